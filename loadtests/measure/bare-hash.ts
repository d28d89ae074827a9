// A program of its own: verifies the same hash over and over, with nothing around it, and prints the median in ms.
import { algorithms, hash, verify } from '../contenders/hashing.ts'
import { middle } from './noise.ts'

const algorithm = algorithms.find((name) => name === process.argv[2])
const times = Number(process.argv[3])
if (algorithm === undefined) throw new Error(`say which of ${algorithms.join(', ')}, and how many times`)

const password = 'correct horse battery staple'
const stored = await hash(password, algorithm)
const tookMs: number[] = []
for (let n = 0; n < times; n++) {
  const startMs = performance.now()
  await verify(password, stored)
  tookMs.push(performance.now() - startMs)
}
console.log(middle(tookMs)?.median)
