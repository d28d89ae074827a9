/** Errors of the client, each with a stable code. */

/** An error without a stack: its code is enough, and a stack costs more than the refusal. */
export class StacklessError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message, options)
    Error.stackTraceLimit = stackTraceLimit
  }
}

export type ClientErrorCode =
  | ('queue_unavailable' | 'wait_aborted' | 'request_too_long')
  | ('invalid_ticket' | 'ticket_expired')

export class PasswordClientError extends Error {
  override readonly name = 'PasswordClientError'
  readonly code: ClientErrorCode

  constructor(code: ClientErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Resolves as the command does. If it fails, throws `queue_unavailable` with the cause. */
export async function orQueueUnavailable<T>(command: Promise<T>, message: string): Promise<T> {
  try {
    return await command
  } catch (error) {
    throw new PasswordClientError('queue_unavailable', message, { cause: error })
  }
}
