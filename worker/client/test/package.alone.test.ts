// The package as an application has it: packed, installed from the tarball in an empty folder by npm, compiled against and run.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createNamespace, newSealKey, startWorker } from '@spillway/local/testing'

const run = promisify(execFile)
const clientDir = fileURLToPath(new URL('..', import.meta.url))
const programsDir = fileURLToPath(new URL('application', import.meta.url))

/** Of the declarations of Node, which TypeScript needs and the package does not. */
const declarationsOfNode = ['@types/node', 'undici-types']
const PACKAGES_MAX = 25
const BYTES_MAX = 15_000_000
const PING_TIMEOUT_MS = 20_000

/** TypeScript 5, which applications have, and the 7 of this repository. */
const compilers = {
  5: join(clientDir, '../../api/test/clients/node_modules/typescript/bin/tsc'),
  7: join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc'),
}

const dir = await mkdtemp(join(tmpdir(), 'spillway-test-'))
after(() => rm(dir, { recursive: true, force: true }))
/** Where nothing but Node's own variables is known of this repository. */
const env = { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: 'production' }

const reachable = await run('npm', ['ping'], { cwd: dir, timeout: PING_TIMEOUT_MS }).then(
  () => true,
  () => false,
)
const skip = reachable ? false : 'the registry of npm cannot be reached'
const application = join(dir, 'application')
const { packages, bytes } = reachable ? await install() : { packages: [], bytes: 0 }

/** Packs the package, installs it, and measures what that installed. */
async function install(): Promise<{ packages: string[]; bytes: number }> {
  await run('npx', ['--yes', 'pnpm', 'pack', '--pack-destination', dir], { cwd: clientDir })
  const tarball = (await readdir(dir)).find((file) => file.endsWith('.tgz'))
  assert.ok(tarball !== undefined)
  await mkdir(application)
  await writeFile(join(application, 'package.json'), '{ "private": true, "type": "module" }')
  const wanted = [join(dir, tarball), '@types/node@20.19.43']
  await run('npm', ['install', '--no-audit', '--no-fund', ...wanted], { cwd: application, env })
  return await installed(join(application, 'node_modules'))
}

/** Every package in a node_modules folder, and the bytes of all files. */
async function installed(folder: string): Promise<{ packages: string[]; bytes: number }> {
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

test('it installs few packages and few bytes', { skip }, () => {
  assert.ok(packages.includes('@spillway/client') && packages.includes('ioredis'), packages.join(' '))
  assert.ok(packages.length <= PACKAGES_MAX, `${packages.length} packages: ${packages.join(' ')}`)
  assert.ok(bytes <= BYTES_MAX, `${bytes} bytes`)
})

test('it holds programs, declarations, licences and a README, and no sources', { skip }, async () => {
  const folder = join(application, 'node_modules/@spillway/client')
  const files = await readdir(folder, { recursive: true })
  const kinds = files.filter((file) => file.includes('.')).map((file) => file.replace(/^.*?\./, '.'))
  assert.deepEqual([...new Set(kinds)].sort(), ['.cjs', '.d.cts', '.d.ts', '.js', '.json', '.md', '.txt'])
  const licences = await readFile(join(folder, 'THIRD-PARTY-LICENSES.txt'), 'utf8')
  for (const name of ['bullmq', 'ajv', 'msgpackr', 'luxon']) assert.match(licences, new RegExp(`^${name} \\d`, 'm'))
})

const modules = ['login.mts', 'drop-in.mts']
const commonJs = ['login.cts', 'drop-in.cts']

/** What applications set. TypeScript 7 has no node10, which 5 takes for `commonjs` by itself. */
const settings: [name: string, compiler: keyof typeof compilers, programs: string[], options: string[]][] = [
  ['nodenext', 5, [...modules, ...commonJs], ['--module', 'nodenext']],
  ['commonjs', 5, commonJs, ['--module', 'commonjs']],
  ['bundler', 5, modules, ['--module', 'esnext', '--moduleResolution', 'bundler']],
  ['nodenext', 7, [...modules, ...commonJs], ['--module', 'nodenext']],
  ['commonjs', 7, commonJs, ['--module', 'commonjs', '--moduleResolution', 'bundler']],
]

const ANSWERS = ['$2b$05$', true, false, 'unsupported_hash']
const DROP_IN_ANSWERS = ['$2b$05$', true, false, 32, true, true]

/** Compiles programs strictly, with the declarations of all libraries checked, and gives the folder of what came out. */
async function compiled(programs: string[], compiler: keyof typeof compilers, options: string[]): Promise<string> {
  const folder = await mkdtemp(join(application, 'compiled-'))
  for (const program of programs) await copyFile(join(programsDir, program), join(folder, program))
  const strict = ['--strict', '--skipLibCheck', 'false', '--target', 'es2022', '--lib', 'es2022', '--types', 'node']
  const known = compiler === 5 ? strict : [...strict, '--ignoreConfig']
  await run(process.execPath, [compilers[compiler], ...known, ...options, ...programs], { cwd: folder }).catch(
    ({ stdout }: { stdout: string }) => Promise.reject(new Error(stdout)),
  )
  return folder
}

async function answersOf(program: string, variables: NodeJS.ProcessEnv = {}): Promise<unknown> {
  const { stdout, stderr } = await run(process.execPath, [program], { cwd: application, env: { ...env, ...variables } })
  assert.equal(stderr, '')
  return JSON.parse(stdout)
}

for (const [name, compiler, programs, options] of settings) {
  test(`TypeScript ${compiler}, ${name}: programs compile, and those of TypeScript 5 run`, { skip }, async () => {
    const folder = await compiled(programs, compiler, options)
    const outputs = (await readdir(folder)).filter((file) => /\.[cm]js$/.test(file))
    assert.equal(outputs.length, programs.length)
    if (compiler === 7) return
    for (const output of outputs) {
      const expected = output.startsWith('drop-in') ? DROP_IN_ANSWERS : [...ANSWERS, 'process']
      assert.deepEqual(await answersOf(join(folder, output), { LOGIN_WAIT_MS: '60000' }), expected)
    }
  })
}

for (const compiler of [5, 7] as const) {
  test(`TypeScript ${compiler}: a wrong type is an error`, { skip }, async () => {
    const said = await compiled(['wrong.mts'], compiler, ['--module', 'nodenext']).then(
      () => '',
      ({ message }: Error) => message,
    )
    const lines = [...said.matchAll(/^wrong\.mts\((\d+),\d+\): error TS\d+/gm)].map(([, line]) => Number(line))
    assert.deepEqual([...new Set(lines)], [6, 7, 8, 9, 10, 11, 12, 13], said)
  })
}

test('require and import give the same door, also to a program on the command line', { skip }, async () => {
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
  const { stdout } = await run(process.execPath, ['--input-type=commonjs', '-e', script], { cwd: application, env })
  const names = ['PasswordsError', 'createPasswords']
  assert.deepEqual(JSON.parse(stdout), [names, names, true, 60])
})

test('the drop-in replacements have the names of their packages, however they are loaded, and share one instance', {
  skip,
}, async () => {
  const script = `
    const required = [require('@spillway/client/bcrypt'), require('@spillway/client/argon2')]
    Promise.all([import('@spillway/client/bcrypt'), import('@spillway/client/argon2')]).then(async (imported) => {
      const [bcrypt, argon2] = imported
      process.env.LOGIN_WAIT_MS = '60000'
      await Promise.all([bcrypt.hash('x', 4), required[1].hash('x', { memoryCost: 64, timeCost: 1, parallelism: 1 })])
      const pids = require('fs').readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').trim().split(' ')
      await argon2.close()
      console.log(JSON.stringify([
        required.map((door) => Object.keys(door).sort()), imported.map((door) => Object.keys(door).sort()), pids.length,
        required.every((door, n) => door.hash === imported[n].hash && door.default === imported[n].default)]))
    })`
  const { stdout } = await run(process.execPath, ['--input-type=commonjs', '-e', script], { cwd: application, env })
  const bcrypt = [
    'close',
    'compare',
    'compareSync',
    'default',
    'genSalt',
    'genSaltSync',
    'getRounds',
    'hash',
    'hashSync',
  ]
  const argon2 = ['argon2d', 'argon2i', 'argon2id', 'close', 'default', 'hash', 'needsRehash', 'verify']
  assert.deepEqual(JSON.parse(stdout), [[bcrypt, argon2], [bcrypt, argon2], 1, true])
})

test('with a queue, a worker hashes', { skip }, async (t) => {
  const { redisUrl, queuePrefix, close } = await createNamespace()
  t.after(close)
  const shared = { REDIS_URL: redisUrl, QUEUE_PREFIX: queuePrefix, SPILLWAY_SEAL_KEYS: newSealKey() }
  const worker = await startWorker({ env: { ...shared, OPS_PORT: '0', WORKER_CONCURRENCY: '1' } })
  t.after(() => worker.close())
  const folder = await compiled(modules, 7, ['--module', 'nodenext'])
  assert.deepEqual(await answersOf(join(folder, 'login.mjs'), shared), [...ANSWERS, 'workers'])
  assert.deepEqual(await answersOf(join(folder, 'drop-in.mjs'), { ...shared, LOGIN_WAIT_MS: '60000' }), DROP_IN_ANSWERS)
  const metrics = await (await fetch(`${worker.opsUrl}/metrics`)).text()
  assert.match(metrics, /^spillway_jobs_total\{job="hash",outcome="hashed"\} 4$/m)
})
