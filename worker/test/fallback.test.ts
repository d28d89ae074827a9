// The worker that a gateway starts where there is none: one that cannot be started yet, and one that has to stop.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@spillway/local/testing'
import { startFallback } from '@spillway/worker/fallback'
import { createLogger } from '../src/log.ts'
import { answerOf, readyClient, workerEnvironment } from './parts.ts'
import { type Space, spaceFor } from './space.ts'

/** How long a process may take to start on a busy machine; less than a job lives here. */
const START_MS = 18_000

interface Obstacle {
  put(env: NodeJS.ProcessEnv): void
  remove(env: NodeJS.ProcessEnv): void
}

const { execPath } = process
const obstacles: Record<string, Obstacle> = {
  'reported by the process': {
    put: () => {
      process.execPath = '/nowhere/node'
    },
    remove: () => {
      process.execPath = execPath
    },
  },
  'thrown at once': {
    // More than Linux takes for one name.
    put: (env) => {
      env.TOO_LONG = 'x'.repeat(200_000)
    },
    remove: (env) => {
      delete env.TOO_LONG
    },
  },
}

for (const [how, { put, remove }] of Object.entries(obstacles)) {
  test(`a fallback that cannot be started, ${how}, is started when it can be`, async (t) => {
    const space = spaceFor(t)
    const client = await readyClient(space)
    const env = environment(space)
    let failures = 0
    const log = createLogger({ service: 'test', level: 'silent' })
    log.error = () => {
      failures += 1
    }
    t.after(() => remove(env))
    put(env)
    const fallback = startFallback({ concurrency: 1, env, isAlone: () => true, log })
    space.closing(() => fallback.close())
    await until(() => failures > 0)
    assert.equal(fallback.active(), false)

    remove(env)
    await until(() => client.load().slots === 1, { timeoutMs: START_MS })
    assert.equal(fallback.active(), true)
  })
}

test('a fallback that stops because workers are back finishes its job, also when its gateway closes meanwhile', async (t) => {
  const space = spaceFor(t)
  const client = await readyClient(space)
  const log = createLogger({ service: 'test', level: 'silent' })
  let isAlone = true
  const fallback = startFallback({ concurrency: 1, env: environment(space), isAlone: () => isAlone, log })
  space.closing(() => fallback.close())
  const answer = answerOf(
    await client.submit('verify', { password: 'right', storedHash: '$spillway-wait$1500$' }),
    START_MS,
  )
  await until(() => client.load().active === 1, { timeoutMs: START_MS })
  isAlone = false
  await until(() => client.load().slots === 0)
  await fallback.close()
  assert.deepEqual(await answer, { kind: 'match' })
})

function environment(space: Space): NodeJS.ProcessEnv {
  return { ...workerEnvironment(space), LOG_LEVEL: 'silent' }
}
