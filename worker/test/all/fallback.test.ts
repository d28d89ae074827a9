// The worker that a gateway starts where there is none: it cannot be started yet, or must stop.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { scratchDir } from '@spillway/infra/rig/namespace'
import { newSealKey } from '@spillway/infra/start/secrets'
import { Fallback } from '@spillway/worker/fallback'
import { test } from 'vitest'
import { answerOf, clientFor, keepingLog, workerEnvironment } from '../parts.ts'
import { type Space, spaceFor } from '../space.ts'

/** A process may take long to start on a busy machine; less than a job lives here. */
const START_MS = 100_000

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
      env.NODE_ENV = 'x'.repeat(200_000)
    },
    remove: (env) => {
      delete env.NODE_ENV
    },
  },
}

for (const [how, { put, remove }] of Object.entries(obstacles)) {
  test(`a fallback that cannot be started, ${how}, is started when it can be`, async (t) => {
    const { space, client } = await clientFor(t)
    const env = environment(space)
    t.onTestFinished(() => remove(env))
    put(env)
    const { fallback, lines } = fallbackOf(space, env)
    await until(() => lines.some(({ level }) => level === 'error'))
    assert.equal(fallback.active(), false)

    remove(env)
    await until(() => client.load().slots === 1, { timeoutMs: START_MS })
    assert.equal(fallback.active(), true)
  })
}

test('a fallback reads its keys again when its gateway does, and goes on', async (t) => {
  const { space, client } = await clientFor(t)
  const file = join(await scratchDir(t), 'keys')
  const { SPILLWAY_SEAL_KEYS = '', ...others } = environment(space)
  await writeFile(file, SPILLWAY_SEAL_KEYS)
  const { fallback } = fallbackOf(space, { ...others, SPILLWAY_SEAL_KEYS_FILE: file })
  await until(() => client.load().slots === 1, { timeoutMs: START_MS })
  assert.equal(client.hasOtherKeys(), false)
  await writeFile(file, newSealKey('other'))
  fallback.hangUp()
  await until(() => client.hasOtherKeys())
  assert.equal(fallback.active(), true)
})

test('a lack of workers that is over does not count for the next one', async (t) => {
  // Whether workers lack, check by check, 250 ms apart: at the fourth the second lack has begun.
  const lacks = [true, false, false, true]
  const { lines } = fallbackOf(spaceFor(t), {}, () => lacks.shift() ?? false)
  await until(() => lacks.length === 0)
  const started = lines.filter(({ level }) => level === 'warn')
  assert.deepEqual(started, [])
})

test('a fallback that ends by itself is started again after longer pauses', async () => {
  const startedAt: number[] = []
  const log = createLogger({ service: 'test', level: 'silent' })
  log.warn = () => {
    startedAt.push(performance.now())
  }
  // Ends at once: there is no Redis URL that it can read.
  const env = { PATH: process.env.PATH, REDIS_URL: 'no-url', LOG_LEVEL: 'silent' }
  const fallback = new Fallback({ concurrency: 1, env, lacksWorkers: () => true, log })
  try {
    await until(() => startedAt.length === 4, { timeoutMs: START_MS })
  } finally {
    await fallback.close()
  }
  const pauses = startedAt.slice(1).map((at, n) => at - (startedAt[n] ?? 0))
  for (const [n, leastMs] of [1_000, 2_000, 4_000].entries()) assert.ok((pauses[n] ?? 0) >= leastMs, pauses.join())
})

test('a fallback that stops because workers are back finishes its job, also when its gateway closes meanwhile', async (t) => {
  const { space, client } = await clientFor(t)
  let lacksWorkers = true
  const { fallback } = fallbackOf(space, environment(space), () => lacksWorkers)
  const answer = answerOf(
    await client.submit('verify', { password: 'right', storedHash: '$spillway-wait$1500$' }),
    START_MS,
  )
  await until(() => client.load().active === 1, { timeoutMs: START_MS })
  lacksWorkers = false
  await until(() => client.load().slots === 0, { timeoutMs: START_MS })
  await fallback.close()
  assert.deepEqual(await answer, { kind: 'match' })
})

test('a fallback is given nothing of its gateway that a worker does not read, not by its options for Node either', async (t) => {
  const space = spaceFor(t)
  const dir = await scratchDir(t)
  const [told, file] = [join(dir, 'told'), join(dir, 'gateway.env')]
  await writeFile(file, 'DATABASE_URL=hush\nSPILLWAY_JWT_KEYS=hush\n')
  // The process that is started tells what it was given.
  const tell = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(told)}, JSON.stringify({ env: process.env, options: process.execArgv }))`
  const given = [
    `--env-file=${file}`,
    '--env-file',
    file,
    '--inspect=0',
    '--import',
    `data:text/javascript,${encodeURIComponent(tell)}`,
  ]
  const before = [...process.execArgv]
  process.execArgv.push(...given)
  t.onTestFinished(() => void process.execArgv.splice(0, Number.POSITIVE_INFINITY, ...before))
  fallbackOf(space, {
    ...environment(space),
    ...{ DATABASE_URL: 'hush', SPILLWAY_JWT_KEYS: 'hush', OPS_USER: 'hush', OPS_PASSWORD: 'hush', ANYTHING: 'hush' },
    ...{ NODE_EXTRA_CA_CERTS: '/dev/null', OTEL_SERVICE_NAME: 'kept' },
  })
  const { env, options }: { env: Record<string, string>; options: string[] } = await until(async () =>
    JSON.parse(await readFile(told, 'utf8')),
  )
  // Node 24 gives the files of its test runner options of its inspector.
  const kept = before.filter((option) => !option.startsWith('--inspect'))
  assert.deepEqual(options, [...kept, ...given.slice(-2)])
  const hushed = Object.entries(env).filter(([, value]) => value.includes('hush'))
  assert.deepEqual(hushed, [])
  assert.deepEqual([env.NODE_EXTRA_CA_CERTS, env.OTEL_SERVICE_NAME, env.OPS_PORT], ['/dev/null', 'kept', '0'])
  assert.equal(env.SPILLWAY_SEAL_KEYS, environment(space).SPILLWAY_SEAL_KEYS)
})

/** A fallback of one slot, closed with its space, and its log. */
function fallbackOf(space: Space, env = environment(space), lacksWorkers = () => true) {
  const { lines, log } = keepingLog()
  const fallback = new Fallback({ concurrency: 1, env, lacksWorkers, log })
  space.closing(() => fallback.close())
  return { fallback, lines }
}

function environment(space: Space): NodeJS.ProcessEnv {
  return { ...workerEnvironment(space), LOG_LEVEL: 'silent' }
}
