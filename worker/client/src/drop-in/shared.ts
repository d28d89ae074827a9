/** What the drop-in replacements share. */
import { createRequire } from 'node:module'
import { type BcryptSetting, bcryptSetting, decodeBcrypt } from '@spillway/queue/wire/setting'
import { PasswordsError } from '../application/passwords-error.js'

/** Bytes as the text that requests carry; undefined for bytes that are not UTF-8. */
export function asText(bytes: Buffer): string | undefined {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? text : undefined
}

/**
 * Without a callback the promise itself. A callback gets the error alone, or `noError` and the
 * value, in a turn of its own: its exceptions are no rejections.
 */
export function settle<T>(work: Promise<T>, callback: unknown, noError?: null): Promise<T> | undefined {
  if (typeof callback !== 'function') return work
  work.then(
    (value) => process.nextTick(() => Reflect.apply(callback, undefined, [noError, value])),
    (error: unknown) => process.nextTick(() => Reflect.apply(callback, undefined, [error])),
  )
  return undefined
}

// bcrypt in this process, for functions that return the hash: nothing else can keep their promise.
// Loads the code when it is used.

/** Version 1 of @node-rs/bcrypt. */
interface Implementation {
  hashSync(password: Uint8Array, cost: number, salt: Uint8Array): string
}

let hasWarned = false

/** The digest of what is read of a password. */
export function digestInPlace(password: Buffer, setting: BcryptSetting): string {
  return hashingHere<Implementation>('@node-rs/bcrypt')
    .hashSync(password, setting.cost, decodeBcrypt(setting.salt))
    .slice(bcryptSetting(setting).length)
}

/** A package that hashes on the event loop of this process. Warns once. */
export function hashingHere<Package>(name: '@node-rs/bcrypt' | '@node-rs/argon2'): Package {
  if (!hasWarned) {
    hasWarned = true
    const message = 'hashSync and compareSync hash on the event loop of this process: use hash and compare'
    process.emitWarning(message, { type: 'SpillwayWarning', code: 'SPILLWAY_SYNC' })
  }
  try {
    return createRequire(import.meta.url)(name)
  } catch (cause) {
    const message = `install ${name}, an optional dependency of @spillway/client, for hashSync and compareSync`
    throw new PasswordsError('not_installed', message, { cause })
  }
}

// What the packages of @node-rs have in common.

export function failure(code: 'GenericFailure' | 'InvalidArg', message: string): Error {
  return Object.assign(new Error(message), { code })
}

/** A signal that has fired ends a call that was not answered; its hash is still made. */
export async function unless<T>(signal: AbortSignal | null | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return await work
  return await new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    work.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject)
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
  })
}
