// The package where it does not run in the Node of all other tests: in newer ones, in bun, Deno and tsx, as pnpm installs it, under Yarn's
// Plug'n'Play, under Node's permission model, and in programs of one file.
import assert from 'node:assert/strict'
import { chmod, copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { test } from 'vitest'
import { env, install, packed, run, skip } from '../installed.ts'

const nodes = ['node22@npm:node@22.23.3', 'node24@npm:node@24.17.0', 'node26@npm:node@26.10.0']
const managers = ['@yarnpkg/cli-dist@4.18.1', 'pnpm@12.21.0']
const others = ['bun@1.4.5', 'deno@2.9.6', 'tsx@4.23.15', 'postject@1.0.0-alpha.6']
const { application } = await install([...nodes, ...managers, ...others])

const program = `
import bcrypt from '@spillway/client/bcrypt'
import { createPasswords } from '@spillway/client'
const stored = await bcrypt.hash('right', 5)
const passwords = createPasswords({ policy: { algorithm: 'bcrypt', cost: 5 }, waitMs: 60_000 })
const verdicts = await Promise.all(['right', 'wrong'].map((password) => passwords.verify(password, stored)))
console.log(JSON.stringify([stored.slice(0, 7), ...verdicts, passwords.capacity().by]))`
const answers = ['$2b$05$', true, false, 'process']

const file = join(application, 'program.mjs')
if (skip === false) await writeFile(file, program)
const bin = (name: string) => join(application, 'node_modules/.bin', name)
const own = (version: number) => join(application, `node_modules/node${version}/bin/node`)

test.skipIf(skip).for([
  ['Node 22', own(22), []],
  ['Node 24', own(24), []],
  ['Node 26', own(26), []],
  ['tsx', bin('tsx'), []],
  ['bun', bin('bun'), []],
  ['deno', bin('deno'), ['run', '-A']],
] as const)('%s: a process beside the application hashes, and both end', async ([, program, args]) => {
  const { stdout } = await run(program, [...args, file], { cwd: application, env, timeout: 120_000 })
  assert.deepEqual(JSON.parse(stdout), answers)
})

/** Not in the other application, whose node_modules would be found. */
async function installedBy(manager: string): Promise<string> {
  const folder = join(dirname(application), manager)
  await mkdir(folder)
  const dependencies = { '@spillway/client': `file:${await packed()}` }
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }))
  await writeFile(join(folder, 'program.mjs'), program)
  return folder
}

test.skipIf(skip)('pnpm: the process beside finds its packages, which no folder of the application has', async () => {
  const folder = await installedBy('pnpm')
  await run(bin('pnpm'), ['install'], { cwd: folder, env, timeout: 240_000 })
  assert.deepEqual(await readdir(join(folder, 'node_modules/@node-rs')).catch(() => []), [])
  const { stdout } = await run(process.execPath, ['program.mjs'], { cwd: folder, env })
  assert.deepEqual(JSON.parse(stdout), answers)
})

test.skipIf(skip)("Yarn's Plug'n'Play: the process beside finds its packages", async () => {
  const folder = await installedBy('yarn')
  await writeFile(join(folder, 'yarn.lock'), '')
  const registry = (await run('npm', ['config', 'get', 'registry'], { cwd: application, env })).stdout.trim()
  const yarnEnv = {
    ...env,
    YARN_NPM_REGISTRY_SERVER: registry,
    YARN_ENABLE_GLOBAL_CACHE: 'false',
    YARN_ENABLE_TELEMETRY: '0',
  }
  const yarn = (...args: string[]) => run(bin('yarn'), args, { cwd: folder, env: yarnEnv, timeout: 240_000 })
  await yarn('install')
  assert.match(await readFile(join(folder, '.pnp.cjs'), 'utf8'), /@spillway\/client/)
  assert.deepEqual(JSON.parse((await yarn('node', 'program.mjs')).stdout), answers)
})

test.skipIf(skip)('the permission model: what it has to allow is named', async () => {
  const known = process.allowedNodeEnvironmentFlags
  const flag = known.has('--permission') ? '--permission' : '--experimental-permission'
  const call = (...allowed: string[]) =>
    run(process.execPath, [flag, '--allow-fs-read=*', ...allowed, file], { cwd: application, env })
  assert.deepEqual(JSON.parse((await call('--allow-child-process')).stdout), answers)
  await assert.rejects(call(), /Node's permission model denies it: it needs --allow-child-process/)
})

// Programs of one file run themselves where they fork: each tells that, is started once, and ends.

const oneFile = `
require('node:fs').appendFileSync(process.execPath + '.starts', 'x')
const { createPasswords } = require('@spillway/client')
createPasswords({ waitMs: 60_000 }).hash('x').catch(({ code, message }) => console.log(JSON.stringify([code, message])))`

/** The fuse that Node looks for: https://nodejs.org/api/single-executable-applications.html */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

const made: Record<string, (source: string, file: string) => Promise<unknown>> = {
  async 'Node SEA'(source, file) {
    await build({ entryPoints: [source], bundle: true, platform: 'node', outfile: `${file}.cjs`, logLevel: 'error' })
    const config = { main: `${file}.cjs`, output: `${file}.blob`, disableExperimentalSEAWarning: true }
    await writeFile(`${file}.json`, JSON.stringify(config))
    await run(own(22), ['--experimental-sea-config', `${file}.json`])
    await copyFile(own(22), file)
    await run(bin('postject'), [file, 'NODE_SEA_BLOB', `${file}.blob`, '--sentinel-fuse', FUSE])
  },
  'bun build --compile': (source, file) =>
    run(bin('bun'), ['build', '--compile', source, '--outfile', file], { cwd: application, env }),
}

/** Of a user who has no other, because root has no limit. */
const PROCESSES_AND_THREADS_MAX = 150
const NOBODY = 65_534

test.skipIf(skip).each(Object.entries(made))(
  '%s: the first call says what to do, and nothing is forked',
  async (name, make) => {
    const folder = join(application, name.replaceAll(' ', '-'))
    await mkdir(folder)
    await chmod(folder, 0o777)
    const [source, file] = [join(folder, 'source.cjs'), join(folder, 'program')]
    await writeFile(source, oneFile)
    await make(source, file)
    const asNobody = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
    const capped = [`--nproc=${PROCESSES_AND_THREADS_MAX}`, file]
    const { stdout } = await run('prlimit', capped, { cwd: folder, env, timeout: 60_000, ...asNobody })
    const [code, message] = JSON.parse(stdout)
    assert.equal(code, 'not_installed')
    assert.match(message, /^a program in one file .* give it a queue/)
    assert.equal(await readFile(`${file}.starts`, 'utf8'), 'x')
  },
)
