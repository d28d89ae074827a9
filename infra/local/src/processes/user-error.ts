// Errors that a person can put right: printed as one sentence, without a stack.

/** An expected failure. Its message is what the person reads: what is wrong, and the way out. */
export class UserError extends Error {
  override name = 'UserError'
}

/** Prints an error as its reader needs it: a UserError as its sentence, anything else with its stack. */
export function report(error: unknown): void {
  console.error(error instanceof UserError ? error.message : error)
}
