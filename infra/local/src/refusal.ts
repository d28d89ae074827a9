// What a person can put right is told in one sentence and without a stack.

/** An expected failure. Its message is what the person reads: what is wrong, and the way out. */
export class Refusal extends Error {
  override name = 'Refusal'
}

/** Prints an error as its reader needs it: a refusal as its sentence, anything else with its stack. */
export function report(error: unknown): void {
  console.error(error instanceof Refusal ? error.message : error)
}

/** The last lines of some output, on one line, short enough to be part of a sentence. */
export function lastWords(output: string): string {
  return output.trim().split('\n').slice(-3).join(' / ').slice(-400) || '(it said nothing)'
}
