// Scripts, which wait for all that they ask: one hash with all that starts for it, beside bcrypt; and a seed, beside the native engine alone.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { run } from '@spillway/infra/processes/run'
import { quantile } from '@spillway/infra/rig/quantile'

const COST = 10
const SEEDED = 2_000
/** Of each, in turn. */
const STARTS = 15
const SEEDS = 3
const ENGINE = pathToFileURL(join(import.meta.dirname, '../../../dist/hashing/native.js')).href

const one = (name: string) => `require('${name}').hash('correct horse', ${COST}).then(() => undefined)`
const seed = `
const bcrypt = require('@spillway/client/bcrypt')
const hashes = Array.from({ length: ${SEEDED} }, (_, n) => bcrypt.hash('password ' + n, ${COST}))
Promise.all(hashes).then((made) => { if (new Set(made).size !== ${SEEDED}) throw new Error('a hash is missing') })`
/** It has as many threads as a process beside an application, and has measured itself before. */
const engineAlone = `
const { startNativeEngine } = await import('${ENGINE}')
const engine = await startNativeEngine((await import('node:os')).availableParallelism())
const startedAt = performance.now()
await Promise.all(Array.from({ length: ${SEEDED} }, (_, n) => engine.hash('password ' + n, '$2b$${COST}$CCCCCCCCCCCCCCCCCCCCC.')))
console.log(performance.now() - startedAt)
process.exit()`

/** @param folder where bcrypt and the packed client are installed */
export async function measureScripts(folder: string, hasEngine: boolean): Promise<void> {
  const { PATH, HOME } = process.env
  const node = async (type: 'commonjs' | 'module', text: string) => {
    const startedAt = performance.now()
    const args = [`--input-type=${type}`, '-e', text]
    const stdout = await run(process.execPath, args, { cwd: folder, env: { PATH, HOME } })
    return { tookMs: performance.now() - startedAt, said: Number(stdout) }
  }
  const starts = { bcrypt: [] as number[], client: [] as number[] }
  for (let n = 0; n < STARTS; n += 1) {
    starts.bcrypt.push((await node('commonjs', one('bcrypt'))).tookMs)
    starts.client.push((await node('commonjs', one('@spillway/client/bcrypt'))).tookMs)
  }
  tell('start and one hash', 'bcrypt', starts.bcrypt, starts.client)
  if (!hasEngine) return console.log('The seed is compared with the native engine, which is not built here.')
  const seeds = { engine: [] as number[], client: [] as number[] }
  for (let n = 0; n < SEEDS; n += 1) {
    seeds.engine.push((await node('module', engineAlone)).said)
    seeds.client.push((await node('commonjs', seed)).tookMs)
  }
  tell(`seed of ${SEEDED} hashes`, 'the engine alone', seeds.engine, seeds.client)
}

function tell(what: string, besideWhat: string, others: readonly number[], own: readonly number[]): void {
  const [other = Number.NaN, client = Number.NaN] = [quantile(others, 0.5), quantile(own, 0.5)]
  console.log(
    `${what}: ${client.toFixed(0)} ms; ${besideWhat}: ${other.toFixed(0)} ms; ${(client / other).toFixed(2)} times`,
  )
}
