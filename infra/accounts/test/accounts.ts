// `pnpm accounts` in this process, on a database of the file's own.
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '@spillway/infra/processes/command-line'
import { createNamespace, scratchDir } from '@spillway/infra/rig/namespace'
import { connectDatabase } from '@spillway/prisma'
import { afterAll } from 'vitest'
import { accounts as run } from '../src/command.ts'

/** Of no password that anyone knows. */
export const bcrypt = `$2b$10$${'a'.repeat(53)}`

export const ndjson = (records: unknown[]): string => records.map((record) => `${JSON.stringify(record)}\n`).join('')
export const newEmail = (): string => `${randomUUID()}@example.test`

/** For the tests of one file. */
export async function openAccounts() {
  const namespace = await createNamespace()
  const { databaseUrl } = namespace
  const database = connectDatabase({ url: databaseUrl, poolSize: 1 })
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
