// The recipes, installed from the registry with the packed package: their users register and log in before the change, after it in both
// modes, and before it once more. Those that are large to install are left to `pnpm --filter @spillway/client recipes`.
import assert from 'node:assert/strict'
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findProcess } from '@spillway/infra/processes/process-table'
import { childrenOf } from '@spillway/infra/processes/processor-time'
import { createNamespace, scratchDir } from '@spillway/infra/rig/namespace'
import { type Member, startMember, workerProgram } from '@spillway/infra/start/member'
import { newSealKey } from '@spillway/infra/start/secrets'
import { afterAll, type TestContext, test } from 'vitest'
import { packed, skip } from '../installed.ts'
import { type Installed, installRecipe, recipes } from '../recipes/install.ts'
import { type StartedRecipe, startRecipe, type User } from '../recipes/start.ts'

const USERS_FILE = 'users.json'

const chosen = recipes.filter(({ isLight }) => isLight || process.env.SPILLWAY_RECIPES === 'all')
/** Of a recipe: it is installed, and the large ones are built twice. */
const timeout = 400_000

const dir = await scratchDir({ onTestFinished: afterAll })

/** What a recipe is started with to use the queue of a worker, which hashes one password at a time. */
async function startedQueue(t: TestContext): Promise<{ env: NodeJS.ProcessEnv; worker: Member }> {
  const { redisUrl, queuePrefix, close } = await createNamespace()
  t.onTestFinished(close)
  const shared = { REDIS_URL: redisUrl, SPILLWAY_SEAL_KEYS: newSealKey() }
  const ofWorker = { QUEUE_PREFIX: queuePrefix, OPS_PORT: '0', WORKER_CONCURRENCY: '1' }
  const worker = await startMember(workerProgram, { env: { ...shared, ...ofWorker } })
  t.onTestFinished(() => worker.close())
  return { env: { ...shared, SPILLWAY_QUEUE_PREFIX: queuePrefix }, worker }
}

/** Whether the application has a process beside it that hashes. */
function hashesBeside({ pid }: StartedRecipe): boolean {
  return childrenOf(pid).some((child) => findProcess(child)?.command.includes('hashing-program'))
}

/** The hashes in the file of the users, without anything that is not one of bcrypt at cost 10. */
async function hashesIn(folder: string): Promise<string[]> {
  return (await readFile(join(folder, USERS_FILE), 'utf8')).match(/\$2b\$10\$[./A-Za-z0-9]{53}(?=")/g) ?? []
}

/** Users who registered at any of the versions log in, one more registers, and nobody else gets in. */
async function visited(recipe: StartedRecipe, registered: User[]): Promise<void> {
  for (const user of registered) assert.equal(await recipe.login(user), 200, `${user.email} logs in`)
  const user = { email: `ada-${registered.length}@example.com`, password: `correct horse ${registered.length}` }
  const registration = await recipe.register(user)
  assert.ok([200, 201].includes(registration), `a registration is answered ${registration}:\n${recipe.output()}`)
  registered.push(user)
  assert.equal(await recipe.login(user), 200, recipe.output())
  assert.equal(await recipe.login({ ...user, password: 'wrong' }), 401)
  assert.equal(await recipe.login({ ...user, email: 'eve@example.com' }), 401)
  assert.ok((await recipe.register({ ...user, password: 'of another' })) >= 400, 'an address is registered once')
  assert.equal(await recipe.login({ ...user, password: 'of another' }), 401)
}

for (const recipe of chosen) {
  test.skipIf(skip)(
    `recipes/${recipe.name}: hashes made before the change are accepted after it, and the other way round`,
    { timeout },
    async (t) => {
      const folders = await installRecipe(recipe, await packed(), join(dir, recipe.name))
      const { env: queue, worker } = await startedQueue(t)
      const registered: User[] = []
      let last: string | undefined

      const visit = async (
        version: keyof Installed,
        env: NodeJS.ProcessEnv,
        look: (started: StartedRecipe) => void,
      ) => {
        const folder = folders[version]
        if (last !== undefined && last !== folder) await copyFile(join(last, USERS_FILE), join(folder, USERS_FILE))
        last = folder
        const started = await startRecipe(recipe, { folder, env: { SPILLWAY_WAIT_MS: '60000', ...env } })
        try {
          await visited(started, registered)
          look(started)
        } finally {
          await started.close()
        }
        assert.equal((await hashesIn(folder)).length, registered.length)
      }

      await visit('before', {}, (started) => assert.ok(!hashesBeside(started)))
      await visit('after', {}, (started) => assert.ok(hashesBeside(started)))
      await visit('after', queue, (started) => assert.ok(!hashesBeside(started)))
      const metrics = await (await fetch(`${worker.opsUrl}/metrics`)).text()
      assert.match(metrics, /^spillway_jobs_total\{job="hash",outcome="hashed"\} [1-9]/m)
      assert.match(metrics, /^spillway_jobs_total\{job="verify",outcome="hashed"\} [1-9]/m)
      await visit('before', {}, (started) => assert.ok(!hashesBeside(started)))
    },
  )
}
