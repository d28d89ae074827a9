// A program of its own: the native engine of the worker in turn with the fastest package, both in one thread, and what a
// verify took in each.
import { startNativeEngine } from '@spillway/worker/native'
import { type Engine, engines } from './engines.ts'
import { middle } from './noise.ts'

const [, , algorithm = '', load = '', forMs = ''] = process.argv
const rival: Engine | undefined = engines[algorithm === 'bcrypt' ? '@node-rs/bcrypt' : '@node-rs/argon2']
if (rival === undefined || !(Number(forMs) > 0))
  throw new Error('say bcrypt or argon2id, alone or batches, how many ms')

const password = 'correct horse battery staple'
const stored = await rival.hash(password)
const native = await startNativeEngine(1)
const width = native.widthOf(stored)
const BATCHES = 3
/** Of another cost, and quick: while it is done all others come to wait, and so to share batches that are full. */
const quick = '$2b$04$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy'

interface Took {
  /** Of one verify. */
  processorMs: number
  latencyMs: number
}

/** Does so many verifies and shares what they took among them. */
async function measure(count: number, work: () => Promise<unknown>): Promise<Took> {
  const before = process.cpuUsage()
  const startMs = performance.now()
  await work()
  const latencyMs = (performance.now() - startMs) / count
  const { user, system } = process.cpuUsage(before)
  return { processorMs: (user + system) / 1_000 / count, latencyMs }
}

const verify = () => native.verify(password, stored)
const count = load === 'alone' ? 1 : BATCHES * width
const ours = () =>
  measure(count, () =>
    load === 'alone' ? verify() : Promise.all([native.verify('', quick), ...Array.from({ length: count }, verify)]),
  )
const theirs = () => measure(1, () => rival.verify(password, stored))

if (!(await verify())) throw new Error('the engine does not recognize the hash of the package')
await Promise.all([ours(), theirs()])

const rounds: { ours: Took; theirs: Took }[] = []
for (const endMs = performance.now() + Number(forMs); performance.now() < endMs; )
  rounds.push({ ours: await ours(), theirs: await theirs() })

const median = (of: (round: (typeof rounds)[number]) => number) => middle(rounds.map(of))?.median
console.log(
  JSON.stringify({
    processorMs: median(({ ours }) => ours.processorMs),
    latencyMs: median(({ ours }) => ours.latencyMs),
    // What one waits for when nobody else is there is its latency; what many cost together is processor time.
    ofPackage: median(({ ours, theirs }) =>
      load === 'alone' ? ours.latencyMs / theirs.latencyMs : ours.processorMs / theirs.processorMs,
    ),
  }),
)
native.close()
