// Imports a file: reads, checks, has weak digests wrapped, and writes in batches.
import type { Passwords } from '@spillway/client'
import type { Database } from '@spillway/prisma'
import type { Account, Checked } from './account.ts'
import { insertAccounts } from './insert.ts'
import type { Line } from './records.ts'
import type { RejectedLines } from './rejected.ts'
import { type WeakAccount, wrapped } from './weak.ts'

const BATCH = 2_000
/** Of weak digests: each is a hash of the workers. */
const WEAK_BATCH = 100

export interface ImportOptions {
  lines: AsyncIterable<Line>
  check(record: Record<string, unknown>): Checked
  rejected: RejectedLines
  /** Undefined for a dry run: nothing is written or hashed then. */
  into: { database: Database; passwords(): Passwords } | undefined
  /** Lines before this one are passed over. */
  fromLine: number
  signal: AbortSignal
  /** Called after each batch. */
  progress(report: ImportReport): void
}

export interface ImportReport {
  /** The last line of which all before it are done. */
  line: number
  created: number
  existing: number
  /** How many of the accounts have hashes of which format. */
  formats: Map<string, number>
  rejected: number
}

interface Numbered<T> {
  line: number
  of: T
}

/** Ends early when the signal fires, after the batch in hand. */
export async function importAccounts(options: ImportOptions): Promise<ImportReport> {
  const { lines, check, rejected, into, fromLine, signal } = options
  const report: ImportReport = { line: fromLine - 1, created: 0, existing: 0, formats: new Map(), rejected: 0 }
  let ready: Numbered<Account>[] = []
  let toWrap: Numbered<WeakAccount>[] = []

  const reject = (line: number, reason: string): void => {
    rejected.add(line, reason)
    report.rejected++
  }
  const count = (format: string): void => void report.formats.set(format, (report.formats.get(format) ?? 0) + 1)

  async function wrapAll(): Promise<void> {
    if (into !== undefined && toWrap.length > 0) {
      const passwords = into.passwords()
      ready.push(
        ...(await Promise.all(toWrap.map(async ({ line, of }) => ({ line, of: await wrapped(passwords, of) })))),
      )
    }
    toWrap = []
  }

  async function write(lastLine: number): Promise<void> {
    await wrapAll()
    if (into !== undefined && ready.length > 0) {
      const { created, existing, conflicting } = await insertAccounts(
        into.database,
        ready.map(({ of }) => of),
      )
      report.created += created
      report.existing += existing
      for (const place of conflicting)
        reject(ready[place]?.line ?? lastLine, 'has an id that belongs to another address')
    }
    ready = []
    report.line = lastLine
    options.progress(report)
  }

  let last = fromLine - 1
  for await (const { number, record, problem = '' } of lines) {
    if (number < fromLine) continue
    last = number
    const checked = record === undefined ? ({ kind: 'rejected', reason: problem } as const) : check(record)
    if (checked.kind === 'rejected') {
      reject(number, checked.reason)
    } else if (checked.kind === 'weak') {
      count(`${checked.format}, weak, inside argon2id`)
      toWrap.push({ line: number, of: checked })
    } else {
      count(checked.format)
      ready.push({ line: number, of: checked.account })
    }
    if (toWrap.length >= WEAK_BATCH) await wrapAll()
    if (ready.length >= BATCH) await write(number)
    if (signal.aborted) break
  }
  await write(last)
  return report
}
