// What a person can put right is told in one sentence and without a stack.

/** An expected failure. Its message is what the person reads: what is wrong, and the way out. */
export class Refusal extends Error {
  override name = 'Refusal'
}

/** Prints an error as its reader needs it: a refusal as its sentence, anything else with its stack. */
export function report(error: unknown): void {
  console.error(error instanceof Refusal ? error.message : error)
}
