/** What the drop-in replacements share. */
import { createRequire } from 'node:module'
import { type BcryptSetting, bcryptSetting } from '@spillway/queue/wire/setting'
import { PasswordsError } from '../application/passwords-error.js'

/** Bytes as the text that requests carry; undefined for bytes that are not UTF-8. */
export function asText(bytes: Buffer): string | undefined {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? text : undefined
}

/**
 * Returns the promise if there is no callback. A callback gets only the error, or `noError` and the
 * value, in its own turn: its exceptions are not rejections.
 */
export function settle<T>(work: Promise<T>, callback: unknown, noError?: null): Promise<T> | undefined {
  if (typeof callback !== 'function') return work
  work.then(
    (value) => process.nextTick(() => Reflect.apply(callback, undefined, [noError, value])),
    (error: unknown) => process.nextTick(() => Reflect.apply(callback, undefined, [error])),
  )
  return undefined
}

// bcrypt in this process, for functions that return the hash synchronously. Loads the code when it
// is used.

interface Implementation {
  hashSync(password: Uint8Array, options: { salt: string }): string
}

let implementation: Implementation | undefined

/** The digest of what is read of a password. */
export function digestInPlace(password: Buffer, setting: BcryptSetting): string {
  implementation ??= loadImplementation()
  const salt = bcryptSetting(setting)
  return implementation.hashSync(password, { salt }).slice(salt.length)
}

/** Warns once. */
function loadImplementation(): Implementation {
  const message = 'hashSync and compareSync hash on the event loop of this process: use hash and compare'
  process.emitWarning(message, { type: 'SpillwayWarning', code: 'SPILLWAY_SYNC' })
  try {
    return createRequire(import.meta.url)('@node-rs/bcrypt')
  } catch (cause) {
    const message = 'install @node-rs/bcrypt, an optional dependency of @spillway/client, for hashSync and compareSync'
    throw new PasswordsError('not_installed', message, { cause })
  }
}
