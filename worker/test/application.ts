// What tests of an application's passwords share.
import assert from 'node:assert/strict'
import { PasswordsError, type PasswordsErrorCode } from '@spillway/client/application/passwords-error'

/** The process beside an application, as it is compiled here. */
export const besideProgram = new URL('../dist/beside.cjs', import.meta.url)
/** With a queue no process is started. */
export const noProgram = new URL('file:///nowhere/beside.cjs')

export async function rejectsWith(code: PasswordsErrorCode, call: Promise<unknown>): Promise<PasswordsError> {
  const error = await call.then(
    (value) => assert.fail(`was answered ${String(value)} instead of ${code}`),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof PasswordsError, String(error))
  assert.equal(error.code, code)
  return error
}
