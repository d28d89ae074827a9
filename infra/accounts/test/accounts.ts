// `pnpm accounts` in this process, on a database of the file's own; and an import on its own.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createCheck, type Unhashed } from '@spillway/infra/accounts/account'
import { accounts as run } from '@spillway/infra/accounts/command'
import { type ImportOptions, importAccounts } from '@spillway/infra/accounts/import'
import { parseOptions } from '@spillway/infra/accounts/options'
import { readRecords } from '@spillway/infra/accounts/records'
import { createNamespace, scratchDir } from '@spillway/infra/harness/namespace'
import { UserError } from '@spillway/infra/processes/command-line'
import { connectDatabase } from '@spillway/prisma'
import { Hasher } from '@spillway/worker/hashing/index'
import { argon2idPolicy } from '@spillway/worker/hashing/policy'
import { afterAll } from 'vitest'

/** It hashes quickly. */
export const cheapHasher = (settings: Parameters<typeof Hasher.load>[1] = {}) =>
  Hasher.load(argon2idPolicy({ memoryKib: 64, time: 1, parallelism: 1 }), settings)

/** Of a busy machine. */
const patience = { connectionTimeoutMs: 60_000, statementTimeoutMs: 60_000 }

/** Of no password that anyone knows. */
export const bcrypt = `$2b$10$${'a'.repeat(53)}`

export const ndjson = (records: readonly unknown[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('')
export const newEmail = (): string => `${randomUUID()}@example.test`

/** For the tests of one file. */
export async function openAccounts() {
  const namespace = await createNamespace()
  const { databaseUrl } = namespace
  const database = connectDatabase({ url: databaseUrl, poolSize: 1, ...patience })
  afterAll(async () => {
    await database.$disconnect()
    await namespace.close()
  })
  const dir = await scratchDir({ onTestFinished: afterAll })
  return {
    databaseUrl,
    database,
    dir,
    /** Runs the command, on this database unless the environment names another. */
    async accounts(args: string[], env: NodeJS.ProcessEnv = {}) {
      const said: Record<'log' | 'error', string[]> = { log: [], error: [] }
      const output = {
        log: (text: string) => void said.log.push(text),
        error: (text: string) => void said.error.push(text),
      }
      const code = await run(args, { DATABASE_URL: databaseUrl, ...env }, output).catch((error) => {
        if (!(error instanceof UserError)) throw error
        output.error(error.message)
        return 1
      })
      return { code, stdout: said.log.join('\n'), stderr: said.error.join('\n') }
    },
    async fileOf(name: string, content: string | Buffer): Promise<string> {
      const file = join(dir, name)
      await writeFile(file, content)
      return file
    },
    stored: (email: string) => database.user.findUnique({ where: { email } }),
  }
}

/** The lines of a file that were rejected. */
export async function rejectedOf(file: string): Promise<{ line: number; reason: string }[]> {
  const text = await readFile(`${file}.rejected.ndjson`, 'utf8')
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

/** What an import with these options makes of a file: in a database, or without any. */
export async function imported(hasher: Hasher, file: string, options: string[], into?: ImportOptions['into']) {
  const command = parseOptions(['import', file, ...options])
  assert.ok(command?.name === 'import')
  const check = createCheck({
    ...command,
    settings: { firebase: { logCost: 14, blockSize: 8 } },
    hasher,
  })
  const accounts: Unhashed[] = []
  const hashes: string[] = []
  const rejectedLines: { line: number; reason: string }[] = []
  const mapped = new Map<string, string>()
  const report = await importAccounts({
    lines: readRecords(file, command.preset.columns),
    check(record) {
      const checked = check(record)
      if (checked.kind !== 'rejected') accounts.push(checked.account)
      if (checked.kind === 'account') hashes.push(checked.account.passwordHash)
      return checked
    },
    rejected: (of) => void rejectedLines.push(of),
    into,
    mapped: (ids) => void mapped.set(ids.old, ids.new),
    signal: new AbortController().signal,
    progress: () => undefined,
  })
  const { read, created, existing, deleted } = report
  assert.equal(read, rejectedLines.length + (into === undefined ? accounts.length : created + existing + deleted))
  return { ...report, accounts, hashes, rejectedLines, mapped, emails: accounts.map(({ email }) => email) }
}
