// What reaches into private parts of dependencies is listed, and the pause before reconnecting has the name that is known here.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { test } from 'vitest'
import { unrefRedis } from '../../src/inside/ioredis.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const room = (file: string) => `worker/queue/src/inside/${file}.ts`

/** What goes beyond the public API of a dependency, and the files that may. */
const hooks: [what: string, pattern: RegExp, files: string[]][] = [
  [
    'private fields',
    /Reflect\.get\((?!globalThis)\w+, '|\b_(handle|getActiveHandles)\b/,
    ['bullmq', 'ioredis', 'node'].map(room),
  ],
  ['prototypes', /\.prototype\b|setPrototypeOf/, ['ioredis', 'node'].map(room)],
  ['files inside a package', /from '[^.'][^']*\/(built|lib|src)\//, [room('ioredis')]],
  [
    "others' listeners",
    /removeAllListeners\(/,
    ['api/src/plugins/server-options.ts', 'worker/common/src/pipeline-limit.ts'],
  ],
  [
    'options of a job in hand, and of a running worker',
    /\.opts\.\w+ = /,
    ['consumer', 'job-watch'].map((file) => `worker/src/consumer/${file}.ts`),
  ],
  ["the pool of Prisma's driver", /\bpool\.(on\(|options\b)/, ['prisma/src/index.ts']],
  ["Prisma's schema engine", /schema_engine_bg/, ['prisma/test/schema-engine.ts']],
  ["the text of esbuild's output", /__toESM/, ['worker/client/packaging/bundle.ts']],
]

const dirs = [
  ...['api/src', 'worker/src', 'worker/client/src', 'worker/client/packaging', 'worker/queue/src'],
  ...['worker/common/src', 'prisma/src', 'prisma/test'],
]
const files = dirs.flatMap((dir) =>
  readdirSync(join(root, dir), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.c?ts$/.test(name) && !name.startsWith('generated'))
    .map((name) => join(dir, name)),
)

test.each(hooks)('only the listed files reach for %s', (_what, pattern, expected) => {
  const reaching = files.filter((file) => pattern.test(readFileSync(join(root, file), 'utf8')))
  assert.deepEqual(reaching.toSorted(), expected.toSorted())
})

test('CONTRIBUTING names each file outside inside/ in its table of hooks', () => {
  const page = readFileSync(join(root, '.github/CONTRIBUTING.md'), 'utf8')
  const table = page.slice(page.indexOf('| hook | package |'), page.indexOf('## Budgets'))
  const outside = hooks.flatMap(([, , all]) => all).filter((file) => !file.startsWith('worker/queue/src/inside/'))
  const unlisted = outside.filter((file) => !table.includes(`(../${file})`))
  assert.deepEqual(unlisted, [])
})

test('the pause before reconnecting does not keep the process alive', async () => {
  const redis = new Redis({ host: '127.0.0.1', port: 1, retryStrategy: () => 60_000 })
  redis.on('error', () => undefined)
  unrefRedis(redis)
  await new Promise((resolve) => redis.once('reconnecting', resolve))
  const timer: unknown = Reflect.get(redis, 'reconnectTimeout')
  assert.ok(timer instanceof Object && 'hasRef' in timer && typeof timer.hasRef === 'function')
  assert.equal(timer.hasRef(), false)
  redis.disconnect()
})
