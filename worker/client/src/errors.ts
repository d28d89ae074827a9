/** What the client throws, each with a stable code. */

export type ClientErrorCode = 'queue_unavailable' | 'wait_aborted' | 'held_too_often'

export class PasswordClientError extends Error {
  override readonly name = 'PasswordClientError'
  readonly code: ClientErrorCode

  constructor(code: ClientErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
