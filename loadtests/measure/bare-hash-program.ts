// A program that verifies one password over and over by some implementations in turn, and prints
// what a verify took in each.
import { engines } from './engines.ts'

const [, , forMs = '', threadsText = '', ...names] = process.argv
const threads = Number(threadsText)
if (!(Number(forMs) > 0 && threads > 0) || names.length === 0)
  throw new Error('say for how many ms, in how many threads, and by which implementations')

const PASSWORD = 'correct horse battery staple'
/** Of each thread, so that all but the last of them have company. */
const BATCHES = 3
/** A quick hash of another cost: meanwhile all others queue up, and so share full batches. */
const QUICK = '$2b$04$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy'

interface Implementation {
  /** How many verifies the work holds. */
  count: number
  work(): Promise<unknown>
}

/** @param name of a package, or `native:<package whose hashes it verifies>:alone` or `:batches` */
async function implementation(name: string): Promise<Implementation> {
  const [, packageName = name, load] = name.split(':')
  const engine = engines[packageName]
  if (engine === undefined) throw new Error(`there is no ${name}: say one of ${Object.keys(engines).join(', ')}`)
  const stored = await engine.hash(PASSWORD)
  const verifies = async (verify: (password: string, stored: string) => Promise<boolean>) => {
    if (!(await verify(PASSWORD, stored))) throw new Error(`${name} does not recognize a hash of ${packageName}`)
    return () => verify(PASSWORD, stored)
  }
  if (load === undefined) {
    const verify = await verifies(engine.verify)
    const count = threads === 1 ? 1 : BATCHES * threads
    return { count, work: () => together(count, verify) }
  }
  const { NativeEngine } = await import('@spillway/worker/hashing/native')
  const native = await NativeEngine.start(threads)
  const verify = await verifies((password, stored) => native.verify(password, stored))
  if (load === 'alone') return { count: 1, work: verify }
  const count = BATCHES * threads * native.widthOf(stored)
  const quick = () => native.verify('', QUICK)
  return { count, work: () => Promise.all([together(threads, quick), together(count, verify)]) }
}

function together(count: number, verify: () => Promise<boolean>): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, verify))
}

/** Shares what the work took, in processor time of all threads and in time, among its verifies. */
async function measure({ count, work }: Implementation) {
  const before = process.cpuUsage()
  const startMs = performance.now()
  await work()
  const latencyMs = (performance.now() - startMs) / count
  const { user, system } = process.cpuUsage(before)
  return { processorMs: (user + system) / 1_000 / count, latencyMs }
}

const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]

const measured: { implementation: Implementation; rounds: Awaited<ReturnType<typeof measure>>[] }[] = []
for (const name of names) measured.push({ implementation: await implementation(name), rounds: [] })
for (const endMs = performance.now() + Number(forMs); performance.now() < endMs; ) {
  for (const { implementation, rounds } of measured) rounds.push(await measure(implementation))
}
const took = measured.map(({ rounds }) => ({
  medianMs: median(rounds.map(({ latencyMs }) => latencyMs)),
  processorMs: median(rounds.map(({ processorMs }) => processorMs)),
}))
console.log(JSON.stringify(took))
// Threads of the native engine would keep the process.
process.exit()
