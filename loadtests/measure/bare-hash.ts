// A program of its own: verifies the same hash over and over with nothing around it, and prints what one took.
import { type Engine, engines } from './engines.ts'
import { middle } from './noise.ts'

const name = process.argv[2] ?? ''
const forMs = Number(process.argv[3])
const engine: Engine | undefined = engines[name]
if (engine === undefined || !(forMs > 0))
  throw new Error(`say which of ${Object.keys(engines).join(', ')}, and for how many ms`)

const password = 'correct horse battery staple'
const stored = await engine.hash(password)
if (!(await engine.verify(password, stored))) throw new Error(`${name} does not recognize its own hash`)

const tookMs: number[] = []
const before = process.cpuUsage()
for (const endMs = performance.now() + forMs; performance.now() < endMs; ) {
  const startMs = performance.now()
  await engine.verify(password, stored)
  tookMs.push(performance.now() - startMs)
}
const { user, system } = process.cpuUsage(before)
console.log(
  JSON.stringify({
    medianMs: middle(tookMs)?.median,
    meanMs: tookMs.reduce((sum, ms) => sum + ms, 0) / tookMs.length,
    processorMs: (user + system) / 1_000 / tookMs.length,
  }),
)
