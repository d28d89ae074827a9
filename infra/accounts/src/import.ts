// Imports a file: reads, checks, has weak digests wrapped, and writes in batches. Every line is
// created, left, left out or rejected.
import { hash } from 'node:crypto'
import { createWriteStream, type WriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import type { Passwords } from '@spillway/client'
import { UserError } from '@spillway/infra/processes/command-line'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { type Account, type Checked, type WeakAccount, wrapped } from './account.ts'
import type { FindDeleted } from './deleted.ts'
import type { Line } from './text.ts'

const BATCH = 1_000
/** Of weak digests: each is a hash of the workers. */
const WEAK_BATCH = 100

export interface ImportOptions {
  lines: AsyncIterable<Line>
  check(record: Record<string, unknown>): Checked
  rejected(of: { line: number; reason: string }): void
  /** Undefined for a dry run: nothing is written or hashed then. */
  into: { database: Database; passwords(): Passwords; findDeleted: FindDeleted } | undefined
  /** Told the id that an account has here, for each that had another in the old system. */
  mapped(ids: { old: string; new: string }): void
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
  /** Accounts that were deleted here, or have another address now: they do not come back. */
  deleted: number
  rejected: number
  reasons: Map<string, { count: number; firstLine: number }>
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
  const { check, into } = options
  const report: ImportReport = {
    ...{ line: 0, read: 0, created: 0, existing: 0, deleted: 0, rejected: 0 },
    ...{ reasons: new Map(), formats: new Map() },
  }
  /** The first line of each address, by 48 bits of its digest: a file may have millions. */
  const firstLines = new Map<number, number>()
  let ready: Numbered<Account>[] = []
  let toWrap: Numbered<WeakAccount>[] = []

  const reject = (line: number, reason: string): void => {
    options.rejected({ line, reason })
    report.rejected++
    // Reasons that name a line are counted together.
    const general = reason.replace(/ of line \d+$/, ' of an earlier line')
    const { count = 0, firstLine = line } = report.reasons.get(general) ?? {}
    report.reasons.set(general, { count: count + 1, firstLine })
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
    const deleted = await into?.findDeleted(ready.flatMap(({ of: { email, id } }) => [email, id]))
    const kept = ready.filter(({ of: { email, id } }) => !deleted?.has(email) && !deleted?.has(id))
    report.deleted += ready.length - kept.length
    ready = kept
    const accounts = ready.map(({ of }) => of)
    const left = into === undefined ? [] : await insertAccounts(into.database, accounts)
    const byPlace = new Map(left.map((one) => [one.place, one]))
    for (const [place, { line, of }] of ready.entries()) {
      const { why, id } = byPlace.get(place) ?? { why: 'created', id: of.id }
      const key = Number.parseInt(hash('sha1', of.email).slice(0, 12), 16)
      const first = firstLines.get(key)
      if (first === undefined) firstLines.set(key, line)
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
    report.formats.set(format, (report.formats.get(format) ?? 0) + 1)
    if (checked.kind === 'weak') toWrap.push({ line: number, of: checked })
    else ready.push({ line: number, of: checked.account })
    if (toWrap.length >= WEAK_BATCH) await wrapAll()
    if (ready.length >= BATCH) await write(number)
  }

  let last = 0
  try {
    for await (const line of options.lines) {
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
        ${column(({ emailConfirmedAt }) => emailConfirmedAt?.toISOString() ?? null)}::timestamptz[],
        ${column(({ disabledAt }) => disabledAt?.toISOString() ?? null)}::timestamptz[]
      ) WITH ORDINALITY AS account (id, email, password_hash, created_at, email_confirmed_at, disabled_at, place)
    ), created AS (
      INSERT INTO users (id, email, password_hash, created_at, email_confirmed_at, disabled_at, updated_at)
      SELECT id, email, password_hash, created_at, email_confirmed_at, disabled_at, now() FROM given ORDER BY place
      ON CONFLICT DO NOTHING
      RETURNING id, email
    )
    SELECT given.place::int - 1 AS place, coalesce(users.id, created.id) AS id,
      CASE WHEN users.id IS NOT NULL THEN 'existed' WHEN created.id IS NOT NULL THEN 'twice' ELSE 'id-taken' END AS why
    FROM given LEFT JOIN users USING (email) LEFT JOIN created USING (email)
    WHERE created.id IS NULL OR created.id <> given.id`
  return await rawQuery<Left>(database, sql)
}

/**
 * A file beside an import: numbers and reasons of lines that were not imported, or old and new ids.
 * It is created with the first line that is added. Its owner alone can read it.
 */
export class LinesFile {
  readonly #file: string
  #stream: WriteStream | undefined

  constructor(file: string) {
    this.#file = file
  }

  add(record: object): void {
    this.#stream ??= createWriteStream(this.#file, { mode: 0o600 })
    this.#stream.write(`${JSON.stringify(record)}\n`)
  }

  async close(): Promise<void> {
    if (this.#stream === undefined) return
    this.#stream.end()
    await finished(this.#stream)
  }
}
