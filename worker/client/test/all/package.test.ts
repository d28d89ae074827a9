// The package as an application has it: packed, installed from the tarball in an empty folder by npm, compiled against and run.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { startProcess } from '@spillway/infra/processes/node-process'
import { createNamespace } from '@spillway/infra/rig/namespace'
import { startMember, workerProgram } from '@spillway/infra/start/member'
import { newSealKey } from '@spillway/infra/start/secrets'
import { test } from 'vitest'
import { ADDON_FILE, PACKED_ADDON } from '../../../src/hashing/native.ts'
import { type Compiler, env, install, run, skip } from '../installed.ts'

/** Of the declarations of Node, which TypeScript needs and the package does not. */
const declarationsOfNode = ['@types/node', 'undici-types']
const PACKAGES_MAX = 13
/** The native engine has 1.2 MB of them: rounds of bcrypt for AMD and for Intel. */
const BYTES_MAX = 7_050_000
/** Of the door for pages, compressed. */
const PAGE_BYTES_MAX = 4_608

const { answersOf, application, compiled } = await install()
const { packages, bytes } =
  skip === false ? await measured(join(application, 'node_modules')) : { packages: [], bytes: 0 }

/** Every package in a node_modules folder, and the bytes of all files. */
async function measured(folder: string): Promise<{ packages: string[]; bytes: number }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((file) => !declarationsOfNode.some((name) => file.startsWith(`${name}/`)))
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(folder, file))).size))
  const packages = files.flatMap(
    (file) => /(?:^|node_modules\/)((?:@[^/]+\/)?[^/@.][^/]*)\/package\.json$/.exec(file)?.[1] ?? [],
  )
  return { packages, bytes: sizes.reduce((sum, size) => sum + size, 0) }
}

test.skipIf(skip)('it installs few packages and few bytes', () => {
  assert.ok(packages.includes('@spillway/client') && packages.includes('ioredis'), packages.join(' '))
  assert.ok(packages.length <= PACKAGES_MAX, `${packages.length} packages: ${packages.join(' ')}`)
  assert.ok(bytes <= BYTES_MAX, `${bytes} bytes`)
})

test.skipIf(skip)('it holds programs, declarations, licences and a README, and no sources', async () => {
  const folder = join(application, 'node_modules/@spillway/client')
  const files = await readdir(folder, { recursive: true })
  const kinds = files.filter((file) => file.includes('.')).map((file) => file.replace(/^.*?\./, '.'))
  const addon = existsSync(ADDON_FILE) ? [PACKED_ADDON.slice('spillway'.length)] : []
  const expected = ['.cjs', '.d.cts', '.d.ts', '.js', '.json', '.md', '.mjs', '.txt', ...addon]
  assert.deepEqual([...new Set(kinds)].sort(), expected.sort())
  const licences = await readFile(join(folder, 'THIRD-PARTY-LICENSES.txt'), 'utf8')
  for (const name of ['bullmq', 'ajv', 'msgpackr', 'luxon']) assert.match(licences, new RegExp(`^${name} \\d`, 'm'))
  const readme = await readFile(join(folder, 'README.md'), 'utf8')
  const links = [...readme.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)
  const anchors = [...readme.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title.toLowerCase().replace(/[^\w -]/g, ''),
  )
  const dead = links.filter((link) => !/^https:/.test(link) && !anchors.includes(link.slice(1).replaceAll('-', ' ')))
  assert.deepEqual(dead, [], 'links lead out of the package')
})

test.skipIf(skip)('what pages load is one ES module without imports, below 4.5 KiB compressed', async () => {
  const program = await readFile(join(application, 'node_modules/@spillway/client/browser.js'))
  assert.doesNotMatch(program.toString(), /\b(import|require|process|Buffer)\b/)
  const { length } = gzipSync(program)
  assert.ok(length < PAGE_BYTES_MAX, `${length} bytes`)
})

for (const compiler of [5, 7] as const) {
  test.skipIf(skip)(
    `TypeScript ${compiler}: a page compiles against what browsers have, without the types of Node`,
    async () => {
      const forPages = '--lib es2022,dom --types null --typeRoots none --module esnext --moduleResolution bundler'
      await compiled(['browser.mts'], compiler, forPages.split(' '))
    },
  )
}

const modules = ['login.mts', 'drop-in.mts']
const commonJs = ['login.cts', 'drop-in.cts']

/** What applications set. TypeScript 7 has no node10, which 5 takes for `commonjs` by itself. */
const settings: [name: string, compiler: Compiler, programs: string[], options: string[]][] = [
  ['nodenext', 5, [...modules, ...commonJs], ['--module', 'nodenext']],
  ['commonjs', 5, commonJs, ['--module', 'commonjs']],
  ['bundler', 5, modules, ['--module', 'esnext', '--moduleResolution', 'bundler']],
  ['nodenext', 7, [...modules, ...commonJs], ['--module', 'nodenext']],
  ['commonjs', 7, commonJs, ['--module', 'commonjs', '--moduleResolution', 'bundler']],
]

const ANSWERS = ['$2b$05$', true, false, true, 'expired']
const DROP_IN_ANSWERS = ['$2b$05$', true, false, 32, true, true]

for (const [name, compiler, programs, options] of settings) {
  test.skipIf(skip)(`TypeScript ${compiler}, ${name}: programs compile, and those of TypeScript 5 run`, async () => {
    const folder = await compiled(programs, compiler, options)
    const outputs = (await readdir(folder)).filter((file) => /\.[cm]js$/.test(file))
    assert.equal(outputs.length, programs.length)
    if (compiler === 7) return
    for (const output of outputs) {
      const expected = output.startsWith('drop-in') ? DROP_IN_ANSWERS : [...ANSWERS, 'process']
      assert.deepEqual(await answersOf(join(folder, output), { SPILLWAY_WAIT_MS: '60000' }), expected)
    }
  })
}

for (const compiler of [5, 7] as const) {
  test.skipIf(skip)(`TypeScript ${compiler}: a wrong type is an error`, async () => {
    const said = await compiled(['wrong.mts'], compiler, ['--module', 'nodenext']).then(
      () => '',
      ({ message }: Error) => message,
    )
    const lines = [...said.matchAll(/^wrong\.mts\((\d+),\d+\): error TS\d+/gm)].map(([, line]) => Number(line))
    assert.deepEqual([...new Set(lines)], [6, 7, 8, 9, 10, 11, 12, 13], said)
  })
}

test.skipIf(skip)(
  'require and import give the same door, also to a program on the command line that compiles no text',
  async () => {
    // The process beside must not evaluate it again.
    const script = `
    const required = require('@spillway/client')
    import('@spillway/client').then(async (imported) => {
      const passwords = imported.createPasswords({ policy: { algorithm: 'bcrypt', cost: 4 }, waitMs: 60_000 })
      const stored = await passwords.hash('x')
      await passwords.close()
      console.log(JSON.stringify([
        Object.keys(required).sort(), Object.keys(imported).sort(),
        required.PasswordsError === imported.PasswordsError, stored.length]))
    })`
    const nodeArgs = ['--disallow-code-generation-from-strings', '--input-type=commonjs', '-e', script]
    const { stdout } = await run(process.execPath, nodeArgs, { cwd: application, env })
    const names = ['PasswordsError', 'createPasswords']
    assert.deepEqual(JSON.parse(stdout), [names, names, true, 60])
  },
)

test.skipIf(skip)(
  'the drop-in replacements have the names of their packages, however they are loaded, and share one instance',
  async () => {
    const script = `
    const required = [require('@spillway/client/bcrypt'), require('@spillway/client/argon2')]
    const named = (door) => Object.entries(door).every(([name, value]) => typeof value !== 'function' || value.name === name)
    Promise.all([import('@spillway/client/bcrypt'), import('@spillway/client/argon2')]).then(async (imported) => {
      const [bcrypt, argon2] = imported
      process.env.SPILLWAY_WAIT_MS = '60000'
      await Promise.all([bcrypt.hash('x', 4), required[1].hash('x', { memoryCost: 64, timeCost: 1, parallelism: 1 })])
      const pids = require('fs').readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').trim().split(' ')
      await argon2.close()
      console.log(JSON.stringify([
        required.map((door) => Object.keys(door).sort()), imported.map((door) => Object.keys(door).sort()), pids.length,
        required.every((door, n) => door.hash === imported[n].hash && door.default === imported[n].default), required.every(named)]))
    })`
    const { stdout } = await run(process.execPath, ['--input-type=commonjs', '-e', script], { cwd: application, env })
    const bcrypt = ['close', 'compare', 'compareSync', 'genSalt', 'genSaltSync', 'getRounds', 'hash', 'hashSync']
    const argon2 = ['argon2d', 'argon2i', 'argon2id', 'close', 'hash', 'needsRehash', 'verify']
    const imported = [bcrypt, argon2].map((names) => [...names, 'default'].sort())
    assert.deepEqual(JSON.parse(stdout), [[bcrypt, argon2], imported, 1, true, true])
  },
)

test.skipIf(skip || (process.platform === 'linux' && existsSync(ADDON_FILE) ? false : 'no engine was packed here'))(
  'the process beside an application hashes with the native engine, where the package was packed with it',
  async () => {
    const script = `
    const { readFileSync } = require('fs')
    const passwords = require('@spillway/client').createPasswords({ policy: { algorithm: 'bcrypt', cost: 4 }, waitMs: 60_000 })
    passwords.hash('x').then(async () => {
      const pid = readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').trim()
      const isLoaded = () => readFileSync('/proc/' + pid + '/maps', 'utf8').includes('/${PACKED_ADDON}')
      // It is used a moment later.
      while (!isLoaded()) await new Promise((resolve) => setTimeout(resolve, 50))
      console.log(JSON.stringify(isLoaded()))
      await passwords.close()
    })`
    const { stdout } = await run(process.execPath, ['--input-type=commonjs', '-e', script], { cwd: application, env })
    assert.equal(JSON.parse(stdout), true)
  },
)

test.skipIf(skip)('with a queue, a worker hashes', async (t) => {
  const { redisUrl, queuePrefix, close } = await createNamespace()
  t.onTestFinished(close)
  const shared = { REDIS_URL: redisUrl, QUEUE_PREFIX: queuePrefix, SPILLWAY_SEAL_KEYS: newSealKey() }
  const worker = await startMember(workerProgram, { env: { ...shared, OPS_PORT: '0', WORKER_CONCURRENCY: '1' } })
  t.onTestFinished(() => worker.close())
  const folder = await compiled(modules, 7, ['--module', 'nodenext'])
  const strict = { ...shared, NODE_OPTIONS: '--disallow-code-generation-from-strings' }
  assert.deepEqual(await answersOf(join(folder, 'login.mjs'), strict), [...ANSWERS, 'workers'])
  const dropIn = { ...shared, SPILLWAY_QUEUE_PREFIX: queuePrefix, SPILLWAY_WAIT_MS: '60000' }
  assert.deepEqual(await answersOf(join(folder, 'drop-in.mjs'), dropIn), DROP_IN_ANSWERS)
  const metrics = await (await fetch(`${worker.opsUrl}/metrics`)).text()
  assert.match(metrics, /^spillway_jobs_total\{job="hash",outcome="hashed"\} 8$/m)
})

const command = join(application, 'node_modules/@spillway/client/command.cjs')

test.skipIf(skip)(
  'npx --no-install spillway: keys are printed, and a worker with them hashes for an application',
  async (t) => {
    const { redisUrl, queuePrefix, close } = await createNamespace()
    t.onTestFinished(close)
    const { stdout } = await run('npx', ['--no', 'spillway', 'keys'], { cwd: application, env })
    const [name = '', keys = ''] = stdout.trim().split(/=(.*)/)
    assert.equal(name, 'SPILLWAY_SEAL_KEYS')
    const shared = { REDIS_URL: redisUrl, QUEUE_PREFIX: queuePrefix, SPILLWAY_SEAL_KEYS: keys }
    const worker = startProcess({ entry: command, args: ['worker'], env: { ...shared, OPS_PORT: '0' } })
    t.onTestFinished(() => worker.close())
    await worker.waitForLog(({ msg }) => msg === 'worker ready')
    const folder = await compiled(modules, 7, ['--module', 'nodenext'])
    const dropIn = { ...shared, SPILLWAY_QUEUE_PREFIX: queuePrefix, SPILLWAY_WAIT_MS: '60000' }
    assert.deepEqual(await answersOf(join(folder, 'drop-in.mjs'), dropIn), DROP_IN_ANSWERS)
  },
)
