// `pnpm seed`, on a database and where it cannot.
import assert from 'node:assert/strict'
import { createNamespace, scratchDir } from '@spillway/infra/harness/namespace'
import { startProcess } from '@spillway/infra/processes/node-process'
import { query } from '@spillway/infra/services/query'
import { test } from 'vitest'

test('accounts are made once; without a database a sentence says what to do', async (t) => {
  const { databaseUrl, close } = await createNamespace()
  t.onTestFinished(close)
  const SPILLWAY_DIR = await scratchDir(t)
  const seed = async (env: NodeJS.ProcessEnv) => {
    const entry = 'infra/accounts/src/seed.ts'
    const program = startProcess({
      ...{ entry, args: ['--users', '3'], nodeArgs: ['--import', 'tsx'] },
      env: { SPILLWAY_DIR, ...env },
    })
    return [(await program.exited).code, program.output()] as const
  }
  for (const created of [3, 0])
    assert.match((await seed({ DATABASE_URL: databaseUrl })).join(), new RegExp(`^0,Created ${created} accounts`))
  const [account] = await query(databaseUrl, `SELECT password_hash FROM users WHERE email = 'user-3@example.test'`)
  assert.match(String(account?.password_hash), /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  assert.deepEqual(await seed({}), [1, 'Nothing runs here: run "pnpm start" first, or set DATABASE_URL.'])
})
