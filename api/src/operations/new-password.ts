/** What a new password must not be: short, or one of those that are guessed first (NIST SP 800-63B-4, 3.1.1.2). */
import { dictionary } from '@zxcvbn-ts/language-common'
import { ApiError, type FieldError } from '../problems/errors.js'
import { lengthOf, normalizePassword } from '../schemas/credentials.js'

export interface NewPassword {
  /** The field of the request that it came in. */
  field: string
  password: string
  /** Whose it will be. */
  email: string
}

/** Throws `invalid_request` with what is wrong with a password. */
export type CheckNewPassword = (given: NewPassword) => void

/** Some 50,000, in lower case: those that were found most often in what was stolen elsewhere. */
const common = new Set<string>(dictionary['passwords-common'])

/** A password of fewer characters than this is refused, and one that is common or made of a name: the service's, the account's. */
export function createPasswordCheck(options: { minLength: number; service: string }): CheckNewPassword {
  const { minLength, service } = options
  return ({ field, password, email }) => {
    const refuse = (code: NonNullable<FieldError['code']>, message: string): never => {
      throw new ApiError('invalid_request', { fields: [{ field, code, message }] })
    }
    if (lengthOf(password) < minLength) refuse('password_too_short', `must be text of at least ${minLength} characters`)
    if (isCommon(password) || isNamed(password, [service, email, email.slice(0, email.lastIndexOf('@'))]))
      refuse('password_too_common', 'must be none of the passwords that are guessed first')
  }
}

/** Whether it is among the most common ones, in any case. */
export function isCommon(password: string): boolean {
  return common.has(fold(password))
}

/** Whether it is one of these names, but for digits and signs at its ends. */
function isNamed(password: string, names: string[]): boolean {
  const core = coreOf(password)
  return core !== '' && names.some((name) => coreOf(name) === core)
}

function coreOf(text: string): string {
  return fold(text).replace(/^\P{L}+|\P{L}+$/gu, '')
}

function fold(text: string): string {
  return normalizePassword(text).toLowerCase()
}
