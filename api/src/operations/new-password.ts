/** Checks new passwords: minimum length and blocklist (NIST SP 800-63B-4, 3.1.1.2). */

import { ApiError, type FieldError } from '../plugins/errors.js'
import { fold, lengthOf, normalizePassword } from '../schemas/credentials.js'
import { type PasswordList, readPasswordList } from './breached-list.js'

export interface NewPassword {
  /** The field of the request, for the error. */
  field: string
  password: string
  /** The address of the account. */
  email: string
}

/** Throws `invalid_request` with a field error for a password that is refused. */
export type CheckNewPassword = (given: NewPassword) => void

/** About 50,000 passwords in lower case, the most frequent ones in leaked databases. Made by `pnpm accounts breached common`. */
const common = readPasswordList(new URL('./common.list', import.meta.url))

/** Refuses passwords with fewer characters than `minLength`, common and breached ones, and names of the service or the account. */
export function createPasswordCheck(options: {
  minLength: number
  service: string
  breached?: PasswordList | undefined
}): CheckNewPassword {
  const { minLength, service, breached } = options
  const isBreached = (password: string) =>
    breached !== undefined && [normalizePassword(password), fold(password)].some(breached.has)
  return ({ field, password, email }) => {
    const refuse = (code: NonNullable<FieldError['code']>, message: string): never => {
      throw new ApiError('invalid_request', { fields: [{ field, code, message }] })
    }
    if (lengthOf(password) < minLength) refuse('password_too_short', `must be text of at least ${minLength} characters`)
    if (
      isCommon(password) ||
      isBreached(password) ||
      isNamed(password, [service, email, email.slice(0, email.lastIndexOf('@'))])
    )
      refuse('password_too_common', 'must not be a password that is guessed first')
  }
}

/** The error for a new password where bcrypt makes the hash. */
export function tooLongForBcrypt(field: string): ApiError {
  const message = 'must be 72 bytes or fewer and hold no NUL: bcrypt reads no more'
  return new ApiError('invalid_request', { fields: [{ field, code: 'password_too_long', message }] })
}

/** Whether a password is among the most common ones, in upper or lower case. */
export function isCommon(password: string): boolean {
  return common.has(fold(password))
}

/** Whether a password is one of these names, with or without digits and signs at its ends. */
function isNamed(password: string, names: string[]): boolean {
  const core = coreOf(password)
  return core !== '' && names.some((name) => coreOf(name) === core)
}

function coreOf(text: string): string {
  return fold(text).replace(/^\P{L}+|\P{L}+$/gu, '')
}
