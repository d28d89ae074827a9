/**
 * Settings that are secrets. The value of `NAME` is also read from the file that `NAME_FILE` names,
 * as secrets of Docker, Kubernetes and Vault are mounted.
 */
import { readFileSync } from 'node:fs'
import { type Logger, ThrottledWarning } from './throttled-warning.js'

export function fileVariable(name: string): string {
  return `${name}_FILE`
}

/**
 * The value of a secret, without a byte order mark and a line break at its end. An empty variable counts as not set.
 *
 * @throws one sentence without the path: it may be the secret itself, given to the wrong variable
 */
export function readSecret(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const { [name]: value, [fileVariable(name)]: file } = env
  if (!file) return value || undefined
  if (value) throw new Error(`${name} and ${fileVariable(name)} are both set: unset one of them`)
  const secret = contentsOf(file, fileVariable(name)).replace(/[\r\n]+$/, '')
  if (secret === '') throw new Error(`${fileVariable(name)} names an empty file`)
  return secret
}

function contentsOf(file: string, variable: string): string {
  let bytes: Uint8Array
  try {
    bytes = readFileSync(file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new Error(`${variable} names a file that cannot be read (${code})`)
  }
  const text = utf8Of(bytes)
  if (text === undefined) throw new Error(`${variable} names a file that is not UTF-8`)
  return text
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** The text of a file that people write, without its byte order mark; undefined if it is not UTF-8. */
export function utf8Of(bytes: Uint8Array): string | undefined {
  try {
    const text = decoder.decode(bytes)
    // ASCII in UTF-16 is valid UTF-8, with a NUL in each character.
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}

interface RotatedSecretOptions {
  env: NodeJS.ProcessEnv
  name: string
  /** The value at the start. */
  value: string
  /** Throws one sentence for an invalid value. */
  check(value: string): unknown
  log: Logger
}

/** A secret whose file is read again on each use, for instance for each new connection. */
export class RotatedSecret {
  readonly #options: RotatedSecretOptions
  readonly #unreadable: ThrottledWarning
  #value: string

  constructor(options: RotatedSecretOptions) {
    this.#options = options
    this.#unreadable = new ThrottledWarning(options.log, 'a secret cannot be read again: its last value stays in use')
    this.#value = options.value
  }

  /** The current value of the file; the last valid one while the file is unreadable or invalid. */
  readonly current = (): string => {
    const { env, name, check } = this.#options
    if (!env[fileVariable(name)]) return this.#value
    try {
      const value = readSecret(env, name) ?? this.#value
      if (value !== this.#value) check(value)
      this.#value = value
      this.#unreadable.recovered()
    } catch (error) {
      this.#unreadable.warn(error, { setting: name })
    }
    return this.#value
  }
}

/** A list of keys that can change while they are used. The first key makes what all keys accept. */
export interface KeyList {
  /** The setting that holds the list. */
  readonly setting: string
  /** The ids of the keys, in their order. */
  kids(): string[]
  /** Replaces the list. Throws one sentence for an invalid list, and keeps the old one. */
  replace(text: string): void | Promise<void>
}

/**
 * Reads keys from their files again on SIGHUP, and logs the ids of what has changed. Without files
 * the signal ends the process as before: a closing terminal sends it, too.
 */
export function rereadOnHangup(env: NodeJS.ProcessEnv, lists: readonly KeyList[], log: Logger): void {
  const ofFiles = lists.filter(({ setting }) => env[fileVariable(setting)])
  if (ofFiles.length === 0) return
  const reread = async (list: KeyList): Promise<void> => {
    const { setting } = list
    const before = list.kids()
    try {
      await list.replace(readSecret(env, setting) ?? '')
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown'
      return log.error({ setting, reason, kids: before }, 'keys not read again: the ones before stay in use')
    }
    const kids = list.kids()
    const added = kids.filter((kid) => !before.includes(kid))
    const dropped = before.filter((kid) => !kids.includes(kid))
    log.info({ setting, kids, added, dropped, first: kids[0], firstBefore: before[0] }, 'keys read again')
  }
  // One signal at a time.
  let reading = Promise.resolve()
  process.on('SIGHUP', () => {
    reading = reading.then(async () => {
      for (const list of ofFiles) await reread(list)
    })
  })
}
