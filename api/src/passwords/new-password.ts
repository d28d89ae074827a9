/** Checks new passwords: minimum length and blocklist (NIST SP 800-63B-4, 3.1.1.2). */

import { ApiError, type FieldError } from '../http/problems.js'
import { fold, lengthOf, normalizePassword } from '../schemas/credentials.js'
import { PasswordList } from './breached-list.js'

/** About 50,000 frequent passwords in lower case, made by `pnpm accounts breached common`. */
const common = new PasswordList(new URL('./common.list', import.meta.url))

interface NewPasswordOptions {
  minLength: number
  service: string
  breached?: PasswordList | undefined
}

/** Refuses passwords that are short, common, breached, or a name of service or account. */
export class NewPasswords {
  readonly #options: NewPasswordOptions

  constructor(options: NewPasswordOptions) {
    this.#options = options
  }

  /**
   * Throws `invalid_request` with a field error for a password that is refused.
   *
   * @param given.field the field of the request, for the error
   * @param given.email the address of the account
   */
  check({ field, password, email }: { field: string; password: string; email: string }): void {
    const { minLength, service } = this.#options
    const refuse = (code: NonNullable<FieldError['code']>, message: string): never => {
      throw new ApiError('invalid_request', { fields: [{ field, code, message }] })
    }
    if (lengthOf(password) < minLength) refuse('password_too_short', `must be text of at least ${minLength} characters`)
    const names = [service, email, email.slice(0, email.lastIndexOf('@'))]
    if (isCommon(password) || this.#isBreached(password) || isNamed(password, names))
      refuse('password_too_common', 'is too common; choose another password')
  }

  #isBreached(password: string): boolean {
    const { breached } = this.#options
    return breached !== undefined && [normalizePassword(password), fold(password)].some((form) => breached.has(form))
  }
}

/** The error for a new password if bcrypt makes the hash. */
export function tooLongForBcrypt(field: string): ApiError {
  const message = 'must be 72 bytes or fewer and hold no NUL: bcrypt reads no more'
  return new ApiError('invalid_request', { fields: [{ field, code: 'password_too_long', message }] })
}

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
