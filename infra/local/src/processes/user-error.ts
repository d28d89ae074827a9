// Errors that a user can fix: printed as one sentence, without a stack.

/** An expected failure. Its message names the problem and the way out. */
export class UserError extends Error {
  override name = 'UserError'
}

/** Prints a UserError as its message, any other error with its stack. */
export function report(error: unknown): void {
  console.error(error instanceof UserError ? error.message : error)
}
