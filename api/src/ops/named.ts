/**
 * Operators by name: a file with a line `name:role:digest` for each. The digest is the SHA-256 of a
 * random token that the operator logs in with. `pnpm accounts operator` creates token and line.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Logger } from '@spillway/common/log'
import { utf8Of } from '@spillway/common/secrets'

/** Each role includes the roles before it. */
export const roles = ['viewer', 'support', 'admin'] as const
export type Role = (typeof roles)[number]

export interface Operator {
  name: string
  role: Role
}

/** The token has too many bytes to guess, so a fast digest is enough. */
const TOKEN_BYTES = 32

/** A new token, and its line in the file. Undefined for an invalid name or role. */
export function newOperator(name: string, role: string): { token: string; line: string } | undefined {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  const line = `${name}:${role}:${sha256(token).toString('hex')}`
  return parseOperators(line).problems.length === 0 ? { token, line } : undefined
}

export class NamedOperators {
  readonly #file: string
  readonly #log: Pick<Logger, 'error'>
  #operators: Operators = new Map()
  /** The text that was read last, or the reason why reading failed. */
  #seen: string | undefined

  constructor(file: string, log: Pick<Logger, 'error'>) {
    this.#file = file
    this.#log = log
  }

  /** Reads the file. Throws if it cannot be read. */
  async start(): Promise<void> {
    const bytes = await readFile(this.#file).catch((cause: Error) => {
      throw new Error(`OPS_OPERATORS_FILE cannot be read: ${cause.message}`, { cause })
    })
    const text = utf8Of(bytes)
    if (text === undefined) throw new Error('OPS_OPERATORS_FILE is not UTF-8')
    if (text === this.#seen) return
    const { operators, problems } = parseOperators(text)
    for (const problem of problems) this.#log.error({}, `OPS_OPERATORS_FILE: ${problem}; this line counts for nothing`)
    this.#operators = operators
    this.#seen = text
  }

  /** Reads the file again, so that a change counts at the next request. If it fails, operators do not change. */
  async refresh(): Promise<void> {
    try {
      await this.start()
    } catch (error) {
      if (this.#seen !== String(error)) this.#log.error({ err: error }, 'operators stay as they were')
      this.#seen = String(error)
    }
  }

  /** The operator with this token. */
  find(name: string, token: string): Operator | undefined {
    const known = this.#operators.get(name)
    const isRight = timingSafeEqual(sha256(token), known?.digest ?? Buffer.alloc(32))
    return isRight ? known?.operator : undefined
  }
}

type Operators = ReadonlyMap<string, { operator: Operator; digest: Buffer }>

const LINE = /^(?<name>[\w.@+-]{1,64}):(?<role>\w+):(?<digest>[0-9a-f]{64})$/

/** A line may be empty, or a comment after a `#`. A problem names only the line's number. */
function parseOperators(text: string): { operators: Operators; problems: string[] } {
  const operators = new Map<string, { operator: Operator; digest: Buffer }>()
  const problems: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue
    const { name = '', role: given, digest = '' } = LINE.exec(line.trim())?.groups ?? {}
    const role = roles.find((known) => known === given)
    if (role === undefined)
      problems.push(`line ${index + 1} is not name:role:digest, with a role of ${roles.join(', ')}`)
    else if (operators.has(name)) problems.push(`line ${index + 1} names an operator for the second time`)
    else operators.set(name, { operator: { name, role }, digest: Buffer.from(digest, 'hex') })
  }
  return { operators, problems }
}

export function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
