/**
 * Operators by name, from a file with a line `name:role:hash` for each, which `pnpm accounts
 * operator` makes. Workers verify their passwords. A right one is remembered, so that a page costs
 * no hash, and nobody is logged out when all workers are down or the queue is paused.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Logger } from '@spillway/common/log'
import { type Keyring, type PasswordClient, PasswordClientError } from '@spillway/queue/queue-client'
import { isCommon } from '../operations/new-password.js'
import { atHome, type CountingRedis } from '../plugins/counts.js'
import { lengthOf, normalizePassword } from '../schemas/credentials.js'

/** Each may do what those before it may. */
export const roles = ['viewer', 'support', 'admin'] as const
export type Role = (typeof roles)[number]

export interface Operator {
  name: string
  role: Role
}

/** How long a login is remembered, and how many are. */
const REMEMBERED_MS = 8 * 3_600_000
const REMEMBERED_MAX = 100
const WAIT_MS = 5_000
const CODE_BYTES = 16

const LINE = /^(?<name>[\w.@+-]{1,64}):(?<role>\w+):(?<hash>\$argon2id\$\S+)$/

/** What became of a login; unverified when no worker said. */
type Login = Operator | 'wrong' | 'unverified'

interface Verifier {
  passwords: Pick<PasswordClient, 'submit' | 'cancel'>
  shared: SharedLogins
}

/**
 * Right logins that all gateways remember, in Redis: while a queue is paused or no worker is alive,
 * an operator gets in at each of them. The key of a login is one half of a keyed code, its value the
 * other half: who reads Redis learns nothing, and who writes or answers for it adds no login.
 */
export class SharedLogins {
  readonly #redis: readonly CountingRedis[]
  readonly #keyring: Keyring
  readonly #prefix: string

  constructor(redis: readonly CountingRedis[], keyring: Keyring, queuePrefix: string) {
    this.#redis = redis
    this.#keyring = keyring
    this.#prefix = `${queuePrefix}:operator:`
  }

  async has(login: readonly string[]): Promise<boolean> {
    const codes = this.#codesOf(login)
    const known = codes.map(async ([key, value]) => {
      const found = await atHome(key, this.#redis, ({ connection }) => connection.get(key))
      return found?.length === value.length && timingSafeEqual(Buffer.from(found), Buffer.from(value))
    })
    return (await Promise.all(known).catch(() => [false])).includes(true)
  }

  async add(login: readonly string[]): Promise<void> {
    const [[key, value]] = this.#codesOf(login)
    await atHome(key, this.#redis, ({ connection }) => connection.set(key, value, 'PX', REMEMBERED_MS)).catch(() => {})
  }

  /** By today's seal key first. */
  #codesOf(login: readonly string[]): [[string, string], ...[string, string][]] {
    const code = (mac: Buffer): [string, string] => [
      this.#prefix + mac.toString('base64url', 0, CODE_BYTES),
      mac.toString('base64url', CODE_BYTES),
    ]
    const [today, ...others] = this.#keyring.macs({ purpose: 'operator', id: JSON.stringify(login) })
    return [code(today), ...others.map(code)]
  }
}

interface NamedOperatorsOptions {
  file: string
  log: Pick<Logger, 'warn'>
}

export class NamedOperators {
  readonly #options: NamedOperatorsOptions
  readonly #key = randomBytes(32)
  #text = ''
  #hashes: ReturnType<typeof parseOperators> = new Map()
  /** By the digest of name and password. Those that are being verified are among them. */
  readonly #logins = new Map<string, { login: Promise<Login>; endsAt: number }>()
  #isUnreadable = false

  constructor(options: NamedOperatorsOptions) {
    this.#options = options
  }

  /** Reads the file. Throws for one that cannot be read, or has a malformed line. */
  async start(): Promise<void> {
    const text = await readFile(this.#options.file, 'utf8').catch((cause: Error) => {
      throw new Error(`OPS_OPERATORS_FILE cannot be read: ${cause.message}`, { cause })
    })
    if (text === this.#text) return
    this.#hashes = parseOperators(text)
    this.#text = text
    this.#logins.clear()
  }

  /** Reads the file again. While that fails the operators stay as they are. */
  async refresh(): Promise<void> {
    try {
      await this.start()
      this.#isUnreadable = false
    } catch (error) {
      if (!this.#isUnreadable)
        this.#options.log.warn({ err: error }, 'OPS_OPERATORS_FILE cannot be read: operators stay as they were')
      this.#isUnreadable = true
    }
  }

  /** The login by credentials that were right before, or are being verified. */
  loginOf(name: string, password: string): Promise<Login> | undefined {
    const remembered = this.#logins.get(this.#digest(name, password))
    return remembered !== undefined && remembered.endsAt > performance.now() ? remembered.login : undefined
  }

  /** Has new credentials verified, for an unknown name as well. */
  async logIn(name: string, password: string, verifier: Verifier): Promise<Login> {
    const digest = this.#digest(name, password)
    const remembered = { login: this.#verify(name, password, verifier), endsAt: performance.now() + REMEMBERED_MS }
    this.#logins.delete(digest)
    this.#logins.set(digest, remembered)
    const [oldest = digest] = this.#logins.keys()
    if (this.#logins.size > REMEMBERED_MAX) this.#logins.delete(oldest)
    const login = await remembered.login
    const isRight = typeof login === 'object'
    if (!isRight && this.#logins.get(digest) === remembered) this.#logins.delete(digest)
    return login
  }

  #digest(name: string, password: string): string {
    return createHmac('sha256', this.#key).update(`${name}:${password}`).digest('base64')
  }

  async #verify(name: string, password: string, { passwords, shared }: Verifier): Promise<Login> {
    // It stands for invalid UTF-8, which must not match.
    if (password.includes('\ufffd')) return 'wrong'
    const known = this.#hashes.get(name)
    const credentials = [name, password, known?.hash ?? '']
    if (known !== undefined && (await shared.has(credentials))) return known.operator
    const request = { password: normalizePassword(password), storedHash: known?.hash ?? null, rehash: false }
    try {
      // It overtakes: operators log in during a spike.
      const pending = await passwords.submit('verify', request, { lane: 'known', lifeMs: WAIT_MS })
      const verdict = await pending.answer({ waitMs: WAIT_MS })
      if (verdict?.kind === 'match' && known !== undefined) {
        await shared.add(credentials)
        return known.operator
      }
      if (verdict?.kind === 'match') return 'wrong'
      if (verdict?.kind === 'mismatch') return 'wrong'
      await passwords.cancel(pending.job)
    } catch (error) {
      if (!(error instanceof PasswordClientError)) throw error
    }
    return 'unverified'
  }
}

export const OPERATOR_PASSWORD_LENGTH = 12

/** Whether a password is too weak for a port that others reach: it is seldom changed. */
export function isWeak(password: string): boolean {
  return lengthOf(password) < OPERATOR_PASSWORD_LENGTH || isCommon(password)
}

/**
 * Reads lines of name, role and hash; others are empty, or comments behind a `#`. Throws for a
 * malformed one, and names its number alone: it may hold a hash.
 */
export function parseOperators(text: string): Map<string, { operator: Operator; hash: string }> {
  const operators = new Map<string, { operator: Operator; hash: string }>()
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue
    const { name = '', role: given, hash = '' } = LINE.exec(line.trim())?.groups ?? {}
    const role = roles.find((known) => known === given)
    if (role === undefined || operators.has(name))
      throw new Error(`line ${index + 1} of OPS_OPERATORS_FILE is not name:role:hash, or names somebody twice`)
    operators.set(name, { operator: { name, role }, hash })
  }
  return operators
}
