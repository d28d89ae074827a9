// An error that the person at the terminal can mend.

/**
 * Printed as one sentence, without a stack. It may quote names of options, methods and paths, never a body, a header or what stands
 * alone on the command line: those may hold a password.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
