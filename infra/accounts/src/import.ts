// Imports a file: reads, checks, has weak digests wrapped, and writes in batches. Every line is
// created, left or rejected.
import { hash } from 'node:crypto'
import { createWriteStream, type WriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import type { Passwords } from '@spillway/client'
import { UserError } from '@spillway/infra/processes/command-line'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { type Account, type Checked, type WeakAccount, wrapped } from './account.ts'
import type { Line } from './text.ts'

const BATCH = 1_000
/** Of weak digests: each is a hash of the workers. */
const WEAK_BATCH = 100

export interface ImportOptions {
  lines: AsyncIterable<Line>
  check(record: Record<string, unknown>): Checked
  rejected: Pick<LinesFile, 'add'>
  /** Undefined for a dry run: nothing is written or hashed then. */
  into: { database: Database; passwords(): Passwords } | undefined
  /** Told the id that an account has here, for each that had another in the old system. */
  mapped(ids: { old: string; new: string }): void
  /** Lines before this one are passed over. */
  fromLine: number
  signal: AbortSignal
  /** Called after each batch. */
  progress(report: ImportReport): void
}

export interface ImportReport {
  /** The last line of which all before it are done. */
  line: number
  /** Lines that hold a record, or should. */
  read: number
  created: number
  /** Accounts of the database that have the address of a line: they are left as they are. */
  existing: number
  rejected: number
  reasons: Map<string, number>
  formats: Map<string, number>
  /** Why the file could not be read to its end. */
  failure?: UserError
}

interface Numbered<T> {
  line: number
  of: T
}

/** Ends early after the batch in hand: when the signal fires, or where the file cannot be read. */
export async function importAccounts(options: ImportOptions): Promise<ImportReport> {
  const { check, into, fromLine } = options
  const report: ImportReport = {
    ...{ line: fromLine - 1, read: 0, created: 0, existing: 0, rejected: 0 },
    ...{ reasons: new Map(), formats: new Map() },
  }
  const count = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1)
  const addresses = new Addresses()
  let ready: Numbered<Account>[] = []
  let toWrap: Numbered<WeakAccount>[] = []

  const reject = (line: number, reason: string): void => {
    options.rejected.add({ line, reason })
    report.rejected++
    // Reasons that name a line are counted together.
    count(report.reasons, reason.replace(/ of line \d+$/, ' of an earlier line'))
  }

  async function wrapAll(): Promise<void> {
    const accountOf = async ({ line, of }: Numbered<WeakAccount>) => {
      return { line, of: into ? await wrapped(into.passwords(), of) : { ...of.account, passwordHash: '' } }
    }
    ready.push(...(await Promise.all(toWrap.map(accountOf))))
    toWrap = []
  }

  async function write(lastLine: number): Promise<void> {
    await wrapAll()
    const accounts = ready.map(({ of }) => of)
    const left = into === undefined ? [] : await insertAccounts(into.database, accounts)
    const byPlace = new Map(left.map((one) => [one.place, one]))
    for (const [place, { line, of }] of ready.entries()) {
      const { why, id } = byPlace.get(place) ?? { why: 'created', id: of.id }
      const first = addresses.firstLineOf(of.email, line)
      if (why === 'id-taken') reject(line, 'has an id that belongs to another address')
      else if (first !== undefined && why !== 'created') reject(line, `has the address of line ${first}`)
      else if (why === 'created' && into !== undefined) report.created++
      else if (why !== 'created') report.existing++
      if (of.oldId !== undefined && id !== null && into !== undefined) options.mapped({ old: of.oldId, new: id })
    }
    ready = []
    report.line = lastLine
    options.progress(report)
  }

  async function take({ number, record, problem = '' }: Line): Promise<void> {
    report.read++
    const checked = record === undefined ? ({ kind: 'rejected', reason: problem } as const) : check(record)
    if (checked.kind === 'rejected') return reject(number, checked.reason)
    const format = checked.kind === 'weak' ? `${checked.format}, weak, inside argon2id` : checked.format
    count(report.formats, format)
    if (checked.kind === 'weak') toWrap.push({ line: number, of: checked })
    else ready.push({ line: number, of: checked.account })
    if (toWrap.length >= WEAK_BATCH) await wrapAll()
    if (ready.length >= BATCH) await write(number)
  }

  let last = fromLine - 1
  try {
    for await (const line of options.lines) {
      if (line.number < fromLine) continue
      last = line.number
      await take(line)
      if (options.signal.aborted) break
    }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    report.failure = error
  }
  await write(last)
  return report
}

type Left = {
  place: number
  /**
   * `existed`: an account of the address was there before, and stays as it is. `twice`: the batch
   * has the address before.
   */
  why: 'existed' | 'twice' | 'id-taken'
  /** The id of the account of the address. */
  id: string | null
}

/** Returns those that were not created. */
async function insertAccounts(database: Database, batch: readonly Account[]): Promise<Left[]> {
  const column = <T>(of: (account: Account) => T) => batch.map(of)
  // The addresses that exist are read after the insert by the same snapshot, so without those that
  // it creates.
  const sql = Prisma.sql`
    WITH given AS (
      SELECT * FROM unnest(
        ${column(({ id }) => id)}::uuid[],
        ${column(({ email }) => email)}::text[],
        ${column(({ passwordHash }) => passwordHash)}::text[],
        ${column(({ createdAt }) => createdAt.toISOString())}::timestamptz[],
        ${column(({ emailConfirmedAt }) => emailConfirmedAt?.toISOString() ?? null)}::timestamptz[]
      ) WITH ORDINALITY AS account (id, email, password_hash, created_at, email_confirmed_at, place)
    ), created AS (
      INSERT INTO users (id, email, password_hash, created_at, email_confirmed_at, updated_at)
      SELECT id, email, password_hash, created_at, email_confirmed_at, now() FROM given ORDER BY place
      ON CONFLICT DO NOTHING
      RETURNING id, email
    )
    SELECT given.place::int - 1 AS place, coalesce(users.id, created.id) AS id,
      CASE WHEN users.id IS NOT NULL THEN 'existed' WHEN created.id IS NOT NULL THEN 'twice' ELSE 'id-taken' END AS why
    FROM given LEFT JOIN users USING (email) LEFT JOIN created USING (email)
    WHERE created.id IS NULL OR created.id <> given.id`
  return await rawQuery<Left>(database, sql)
}

const FIRST_CAPACITY = 2 ** 14
const FULL = 0.7
/** 52 bits: one file of a million addresses in ten thousand gives one row a wrong reason. */
const DIGITS = 13

/** The first line of each address of a file, in little memory: an open hash table. */
export class Addresses {
  // Zero is an empty place.
  #keys = new Float64Array(FIRST_CAPACITY)
  #lines = new Uint32Array(FIRST_CAPACITY)
  #count = 0

  /** Undefined for a new address, which is kept. */
  firstLineOf(email: string, line: number): number | undefined {
    const key = Number.parseInt(hash('sha1', email).slice(0, DIGITS), 16) + 1
    const place = this.#placeOf(key)
    if (this.#keys[place] === key) return this.#lines[place]
    this.#keys[place] = key
    this.#lines[place] = line
    if (++this.#count > FULL * this.#keys.length) this.#grow()
    return undefined
  }

  #grow(): void {
    const [keys, lines] = [this.#keys, this.#lines]
    this.#keys = new Float64Array(2 * keys.length)
    this.#lines = new Uint32Array(2 * keys.length)
    for (const [at, key] of keys.entries()) {
      if (key === 0) continue
      const place = this.#placeOf(key)
      this.#keys[place] = key
      this.#lines[place] = lines[at] ?? 0
    }
  }

  /** The place of a key, or the empty one where it belongs. */
  #placeOf(key: number): number {
    const keys = this.#keys
    let place = key % keys.length
    while (keys[place] !== 0 && keys[place] !== key) place = (place + 1) % keys.length
    return place
  }
}

/**
 * A file beside an import: numbers and reasons of lines that were not imported, or old and new ids.
 * It is created with the first line that is added. Its owner alone can read it.
 */
export class LinesFile {
  readonly #file: string
  readonly #flags: 'a' | 'w'
  #stream: WriteStream | undefined

  /** With `append` an older file is continued. */
  constructor(file: string, { append }: { append: boolean }) {
    this.#file = file
    this.#flags = append ? 'a' : 'w'
  }

  add(record: object): void {
    this.#stream ??= createWriteStream(this.#file, { mode: 0o600, flags: this.#flags })
    this.#stream.write(`${JSON.stringify(record)}\n`)
  }

  async close(): Promise<void> {
    if (this.#stream === undefined) return
    this.#stream.end()
    await finished(this.#stream)
  }
}
