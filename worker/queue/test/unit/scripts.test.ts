// Scripts of Redis: their headers say what they read, and what they are called with.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { onTestFinished, test, vi } from 'vitest'
import { claimCanary, readRawLoad, sweepCapacity, writeCapacity } from '../../src/jobs/capacity.ts'
import { findJobs, removeWaitingJob, retakeLock } from '../../src/jobs/jobs.ts'
import { bringForward, promoteOldestDeferred } from '../../src/jobs/lanes.ts'
import { removeEntry } from '../../src/jobs/malformed-jobs.ts'
import { createQueueReporter } from '../../src/jobs/report.ts'
import { SoundQueue } from '../../src/jobs/sound.ts'
import { enterLine, leave, passOver, readTicket, setAside, storeVerdict } from '../../src/jobs/ticket.ts'
import { readScript } from '../../src/redis/read-script.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))

const files = ['worker/queue/src', 'api/src'].flatMap((dir) =>
  readdirSync(join(root, dir), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua') && !file.includes('includes'))
    .map((file) => join(root, dir, file)),
)
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
  const called = new Map<string, number>()
  const redis = new Redis({ lazyConnect: true })
  redis.defineCommand = (command, { numberOfKeys = 0 }) => {
    const run = async (...sent: unknown[]) =>
      void called.set(command.replace('spillway:', ''), sent.length - numberOfKeys)
    Object.assign(redis, { [command]: run })
  }
  redis.status = 'ready'
  const prefix = '{test}'
  const job = { id: 'job', deadline: 1, replyTo: 'gateway' }
  const finished = { answered: 0, expired: 0, failed: 0 }
  const entry = { keys: 'code', name: 'w', fallback: false, slots: 1, serviceMs: 1, busy: 0, finished }
  const sound = new SoundQueue({ redis, prefix, log: { warn: () => {} } })
  await vi.advanceTimersByTimeAsync(1_000)
  sound.close()
  await Promise.allSettled([
    ...[writeCapacity(redis, prefix, 'w', entry, true), readRawLoad(redis, prefix, 1), sweepCapacity(redis, prefix)],
    ...[claimCanary(redis, 'canary', 'code', true), createQueueReporter({ redis, prefix }).read()],
    ...[findJobs(redis, prefix, ['a', 'b']), removeWaitingJob(redis, prefix, 'a')],
    ...[retakeLock(redis, prefix, { id: 'a', token: 't' }, 1), bringForward(redis, prefix, 'a')],
    removeEntry(redis, { prefix, queue: 'q', entry: 'a', withJob: true }),
    ...[promoteOldestDeferred(redis, prefix), leave(redis, prefix, 'a', 'gateway')],
    ...[enterLine(redis, prefix, job, undefined, 0), readTicket(redis, prefix, job)],
    ...[
      passOver(redis, prefix, job, 't'),
      setAside(redis, prefix, job, 't', 's'),
      storeVerdict(redis, prefix, job, 's', 1),
    ],
  ])
  for (const file of files.filter((each) => each.includes('/queue/'))) {
    const { args, repeats } = headerOf(file)
    const sent = called.get(nameOf(file))
    assert.ok(sent === args || (repeats && sent !== undefined && sent >= args), `${file} got ${sent} arguments`)
  }
})
