// The first `pnpm start` of a checkout, on a machine with cargo: our cargo, in a checkout of links to this one.
import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { runStart, whenUp } from '../spillway.ts'

/** Tells its niceness, and ends with a library when it may. */
const CARGO = `#!/bin/sh
nice > niceness
while [ ! -e may-end ]; do sleep 0.1; done
mkdir -p target/release
: > target/release/libspillway_engine.so
`

/** A folder of links to what this checkout has in it, but for some names. */
function linked(from: string, to: string, ...but: string[]): void {
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(from)) if (!but.includes(name)) symlinkSync(join(from, name), join(to, name))
}

function program(file: string, text: string): void {
  writeFileSync(file, text, { mode: 0o755 })
}

test('the engine is built at the lowest priority while all is up, and the terminal tells when it is there', async (t) => {
  const checkout = join(await scratchDir(t), 'checkout')
  const here = (...names: string[]) => join(repositoryDir, ...names)
  linked(here(), checkout, 'worker', 'infra', 'node_modules', '.git', '.spillway')
  linked(here('worker'), join(checkout, 'worker'), 'engine')
  linked(here('infra'), join(checkout, 'infra'), 'local')
  linked(here('node_modules'), join(checkout, 'node_modules'), '.bin')
  linked(here('.spillway'), join(checkout, '.spillway'), 'build.lock', 'start.lock')
  // Where a checkout is, its modules know by their own places.
  cpSync(here('infra', 'local', 'src'), join(checkout, 'infra', 'local', 'src'), { recursive: true })
  const [engine, bin] = [join(checkout, 'worker', 'engine'), join(checkout, 'node_modules', '.bin')]
  for (const folder of [engine, bin]) mkdirSync(folder)
  // Without a pnpm on the PATH, npx would run one, which installs through the links.
  for (const name of ['pnpm', 'turbo']) program(join(bin, name), '#!/bin/sh\n')
  program(join(bin, 'cargo'), CARGO)
  const env = { HASH_ENGINE: 'native', PATH: [bin, process.env.PATH].join(delimiter) }
  const spillway = runStart(t, join(checkout, 'state'), [], env, checkout)
  await whenUp(spillway)
  const niceness = await until(() => readFileSync(join(engine, 'niceness'), 'utf8').trim())
  assert.equal(niceness, '19')
  const isBuilt = /^The native hashing engine is built: workers use it from their next start on\.$/m
  assert.doesNotMatch(spillway.output(), isBuilt)
  writeFileSync(join(engine, 'may-end'), '')
  await spillway.waitForLog(({ msg = '' }) => isBuilt.test(msg))
  assert.ok(existsSync(join(engine, 'spillway.node')))
})
