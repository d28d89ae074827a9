// Scripts of Redis: their headers say what they read, and what they are called with.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { Redis } from 'ioredis'
import { onTestFinished, test, vi } from 'vitest'
import { readGatewayConfig } from '../../../../api/src/config.ts'
import { countIn } from '../../../../api/src/plugins/counts.ts'
import { ProbedNetworks } from '../../../../api/src/plugins/guessing/attacks.ts'
import { Attempts } from '../../../../api/src/plugins/guessing/attempts.ts'
import { Failures } from '../../../../api/src/plugins/guessing/failures.ts'
import { entry } from '../../../test/capacity-entry.ts'
import { claimCanary, readRawLoad, sweepCapacity, writeCapacity } from '../../src/jobs/capacity.ts'
import { findJobs, removeWaitingJob, retakeLock } from '../../src/jobs/jobs.ts'
import { bringForward, promoteOldestDeferred } from '../../src/jobs/lanes.ts'
import { removeEntry, SoundQueue } from '../../src/jobs/malformed-jobs.ts'
import { QueueReporter } from '../../src/jobs/report.ts'
import { enterLine, leave, passOver, readTicket, setAside, storeVerdict } from '../../src/jobs/ticket.ts'
import { readScript } from '../../src/redis/read-script.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const ofQueue = scriptsIn(join(root, 'worker/queue/src'))
const ofGateway = scriptsIn(join(root, 'api/src'))
const files = [...ofQueue, ...ofGateway]

/** The files of scripts in a folder, without their includes. */
function scriptsIn(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua') && !file.includes('includes'))
    .map((file) => join(dir, file))
}

const nameOf = (file: string): string => basename(file, '.lua')

/** What a header says: the numbers of its keys and arguments; of the last argument, whether it may be repeated. */
function headerOf(file: string) {
  const header = /^--\[\[\n(.*?)^\]\]\n/ms.exec(readFileSync(file, 'utf8'))?.[1] ?? ''
  const inputs = (kind: string) => [...header.matchAll(new RegExp(`^ {4}${kind}\\[(\\d+)(\\.\\.\\.)?\\] \\S`, 'gm'))]
  const [keys, args] = [inputs('KEYS'), inputs('ARGV')]
  for (const all of [keys, args])
    assert.deepEqual(
      all.map(([, n]) => Number(n)),
      all.map((_, n) => n + 1),
      file,
    )
  assert.match(header, /^ {2}Output:/m, file)
  return { keys: keys.length, args: args.length, repeats: args.at(-1)?.[2] !== undefined }
}

/** Calls scripts on a connection to no server, and compares their numbers of arguments with the headers. */
async function assertCalls(files: readonly string[], calls: (redis: Redis) => Promise<unknown>): Promise<void> {
  const called = new Map<string, number>()
  const redis = new Redis({ lazyConnect: true })
  redis.defineCommand = (command, { numberOfKeys = 0 }) => {
    const run = async (...sent: unknown[]) =>
      void called.set(command.replace('spillway:', ''), sent.length - numberOfKeys)
    Object.assign(redis, { [command]: run })
  }
  redis.status = 'ready'
  await calls(redis)
  for (const file of files) {
    const { args, repeats } = headerOf(file)
    const sent = called.get(nameOf(file))
    assert.ok(sent === args || (repeats && sent !== undefined && sent >= args), `${file} got ${sent} arguments`)
  }
}

test('each script has a name of its own with its number of keys, and a header', () => {
  assert.ok(files.length > 15)
  assert.equal(new Set(files.map(nameOf)).size, files.length)
  for (const file of files) {
    const { keys, args } = headerOf(file)
    assert.equal(keys, Number(/-(\d+)$/.exec(nameOf(file))?.[1]), file)
    const body = readFileSync(file, 'utf8').replace(/^--\[\[\n.*?^\]\]\n/ms, '')
    for (const [input, kind, n] of body.matchAll(/\b(KEYS|ARGV)\[(\d+)\]/g))
      assert.ok(Number(n) <= (kind === 'KEYS' ? keys : args), `${input} of ${file}`)
  }
})

test('an include is read once, however many include it', () => {
  const source = readScript('publishCapacity-9')
  assert.equal(source.match(/^local function keepOnly/gm)?.length, 1)
  assert.doesNotMatch(source, /@include|KEYS\[1\] capacity hash/)
})

test('each script of the queue is called with the arguments of its header', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const prefix = '{test}'
  const job = { id: 'job', deadline: 1, replyTo: 'gateway' }
  await assertCalls(ofQueue, async (redis) => {
    const sound = new SoundQueue({ redis, prefix, log: { warn: () => {} } })
    await vi.advanceTimersByTimeAsync(1_000)
    sound.close()
    await Promise.allSettled([
      ...[writeCapacity(redis, prefix, 'w', entry, true), readRawLoad(redis, prefix, 1), sweepCapacity(redis, prefix)],
      ...[claimCanary(redis, 'canary', 'code', true), new QueueReporter([redis], prefix).read()],
      ...[findJobs(redis, prefix, ['a', 'b']), removeWaitingJob(redis, prefix, 'a')],
      ...[retakeLock(redis, prefix, { id: 'a', token: 't' }, 1), bringForward(redis, prefix, 'a')],
      removeEntry(redis, { prefix, queue: 'q', entry: 'a', withJob: true }),
      ...[promoteOldestDeferred(redis, prefix), leave(redis, prefix, 'a', 'gateway')],
      ...[enterLine(redis, prefix, job, undefined, 0), readTicket(redis, prefix, job)],
      ...[passOver(redis, prefix, job, 't'), setAside(redis, prefix, job, 't', 's')],
      storeVerdict(redis, prefix, job, 's', 1),
    ])
  })
})

test('each script of the gateway is called with the arguments of its header', async () => {
  const keys = `k:${randomBytes(32).toString('base64')}`
  const config = readGatewayConfig({
    DATABASE_URL: 'postgresql://x/x',
    SPILLWAY_JWT_KEYS: 'x',
    SPILLWAY_SEAL_KEYS: keys,
  })
  await assertCalls(ofGateway, async (connection) => {
    const redis = [{ address: 'a', connection, isUsable: () => true, now: Date.now, countFailed: () => {} }]
    const attempts = new Attempts(config, redis, parseKeyring(keys))
    const attempt = { ...attempts.newAttempt('192.0.2.1'), account: 'a', device: null, failures: 0 }
    await Promise.allSettled([
      ...[countIn(1, 'key', redis), new ProbedNetworks(redis, '{test}').failed('a', '192.0.2.1')],
      ...[attempts.takeForAccount(attempt, 'none'), attempts.end(attempt, 'failed')],
      new Failures(config, redis, parseKeyring(keys)).read('ada@example.test'),
    ])
  })
})
