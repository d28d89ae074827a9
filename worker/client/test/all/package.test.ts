// The package as an application has it: packed, installed from the tarball in an empty folder by npm, compiled against and run.
import assert from 'node:assert/strict'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { createNamespace } from '@spillway/infra/harness/namespace'
import { startProcess } from '@spillway/infra/processes/node-process'
import { test } from 'vitest'
import { env, install, run, skip } from '../installed.ts'

/** Of the declarations of Node, which TypeScript needs and the package does not. */
const declarationsOfNode = ['@types/node', 'undici-types']
const PACKAGES_MAX = 13
const BYTES_MAX = 6_200_000
/** What pages load, compressed. */
const PAGE_BYTES_MAX = 3_072
const ANSWERS = ['$2b$05$', true, false, true, 'expired']
const DROP_IN_ANSWERS = ['$2b$05$', true, false, 32, true, true]

const { answersOf, application, compiled } = await install()
const folder = join(application, 'node_modules/@spillway/client')

test.skipIf(skip)('it installs few packages and few bytes', async () => {
  const modules = join(application, 'node_modules')
  const entries = await readdir(modules, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(modules, join(entry.parentPath, entry.name)))
    .filter((file) => !declarationsOfNode.some((name) => file.startsWith(`${name}/`)))
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(modules, file))).size))
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  const packages = files.flatMap(
    (file) => /(?:^|node_modules\/)((?:@[^/]+\/)?[^/@.][^/]*)\/package\.json$/.exec(file)?.[1] ?? [],
  )
  assert.ok(packages.includes('@spillway/client') && packages.includes('ioredis'), packages.join(' '))
  assert.ok(packages.length <= PACKAGES_MAX, `${packages.length} packages: ${packages.join(' ')}`)
  assert.ok(bytes <= BYTES_MAX, `${bytes} bytes`)
})

test.skipIf(skip)('it names what is bundled, with licences; what pages load is one small ES module', async () => {
  const licences = await readFile(join(folder, 'THIRD-PARTY-LICENSES.txt'), 'utf8')
  for (const name of ['bullmq', 'ajv', 'msgpackr', 'luxon']) assert.match(licences, new RegExp(`^Name: ${name}$`, 'm'))
  const page = await readFile(join(folder, 'lib/follow.mjs'))
  assert.doesNotMatch(page.toString(), /\b(import|require|process|Buffer)\b/)
  const { length } = gzipSync(page)
  assert.ok(length < PAGE_BYTES_MAX, `${length} bytes`)
})

for (const compiler of [5, 7] as const) {
  test.skipIf(skip)(`TypeScript ${compiler}: programs compile, ES modules and CommonJS, and run`, async () => {
    const texts = { 'drop-in.cts': await commonJs('drop-in.mts'), 'login.cts': await commonJs('login.mts') }
    const programs = ['login.mts', 'drop-in.mts', ...Object.keys(texts)]
    const output = await compiled(programs, compiler, ['--module', 'nodenext'], texts)
    if (compiler === 7) return
    for (const kind of ['mjs', 'cjs']) {
      assert.deepEqual(await answersOf(join(output, `login.${kind}`)), [...ANSWERS, 'process'])
      assert.deepEqual(await answersOf(join(output, `drop-in.${kind}`), { SPILLWAY_WAIT_MS: '60000' }), DROP_IN_ANSWERS)
    }
  })
}

test.skipIf(skip)('a wrong type is an error', async () => {
  const said = await compiled(['wrong.mts'], 7, ['--module', 'nodenext']).then(
    () => '',
    ({ message }: Error) => message,
  )
  const lines = [...said.matchAll(/^wrong\.mts\((\d+),\d+\): error TS\d+/gm)].map(([, line]) => Number(line))
  assert.deepEqual([...new Set(lines)], [6, 7, 8, 9, 10, 11, 12, 13], said)
})

/** The same program with its awaits in a function. */
async function commonJs(program: string): Promise<string> {
  const text = await readFile(new URL(`../application/${program}`, import.meta.url), 'utf8')
  const imports = text.split('\n').filter((line) => line.startsWith('import '))
  const rest = text.split('\n').filter((line) => !line.startsWith('import '))
  return [...imports, 'async function main() {', ...rest, '}', 'void main()'].join('\n')
}

test.skipIf(skip)('require and import give the same functions, which have names and can be stubbed', async () => {
  const script = `
    const required = ['', '/bcrypt', '/argon2'].map((door) => require('@spillway/client' + door))
    Promise.all(['', '/bcrypt', '/argon2'].map((door) => import('@spillway/client' + door))).then(async (imported) => {
      process.env.SPILLWAY_WAIT_MS = '60000'
      const [, bcrypt, argon2] = required
      await Promise.all([imported[1].hash('x', 4), argon2.hash('x', { memoryCost: 64, timeCost: 1, parallelism: 1 })])
      const pids = require('fs').readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').trim().split(' ')
      await argon2.close()
      const named = ([name, value]) => typeof value !== 'function' || value.name === name
      const haveNames = required.flatMap(Object.entries).every(named)
      bcrypt.compare = async () => 'stubbed'
      console.log(JSON.stringify([
        required.map((door) => Object.keys(door).sort()), pids.length,
        required.every((door, n) => door === imported[n].default), imported[1].hash === bcrypt.hash,
        haveNames, await imported[1].default.compare('x', 'y')]))
    })`
  const { stdout } = await run(process.execPath, ['--input-type=commonjs', '-e', script], { cwd: application, env })
  const index = ['PasswordsError', 'createPasswords']
  const bcrypt = ['close', 'compare', 'compareSync', 'genSalt', 'genSaltSync', 'getRounds', 'hash', 'hashSync']
  const argon2 = ['argon2d', 'argon2i', 'argon2id', 'close', 'hash', 'needsRehash', 'verify']
  assert.deepEqual(JSON.parse(stdout), [[index, bcrypt, argon2], 1, true, true, true, 'stubbed'])
})

test.skipIf(skip)(
  'npx --no-install spillway: keys are printed, and a worker with them hashes for an application',
  async (t) => {
    const { redisUrl, queuePrefix, close } = await createNamespace()
    t.onTestFinished(close)
    const { stdout } = await run('npx', ['--no', 'spillway', 'keys'], { cwd: application, env })
    const [name = '', keys = ''] = stdout.trim().split(/=(.*)/)
    assert.equal(name, 'SPILLWAY_SEAL_KEYS')
    const shared = { REDIS_URL: redisUrl, QUEUE_PREFIX: queuePrefix, SPILLWAY_SEAL_KEYS: keys }
    const entry = join(folder, 'lib/command.cjs')
    const worker = startProcess({ entry, args: ['worker'], env: { ...shared, OPS_PORT: '0' } })
    t.onTestFinished(() => void worker.close())
    await worker.waitForLog(({ msg }) => msg === 'worker ready')
    const output = await compiled(['login.mts', 'drop-in.mts'], 7, ['--module', 'nodenext'])
    assert.deepEqual(await answersOf(join(output, 'login.mjs'), shared), [...ANSWERS, 'workers'])
    const dropIn = { ...shared, SPILLWAY_QUEUE_PREFIX: queuePrefix, SPILLWAY_WAIT_MS: '60000' }
    assert.deepEqual(await answersOf(join(output, 'drop-in.mjs'), dropIn), DROP_IN_ANSWERS)
  },
)
