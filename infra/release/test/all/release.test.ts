// A release, used as its readers use it. The workflow makes each twice and compares the files.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { run } from '@spillway/infra/processes/run'
import { hasEngine } from '@spillway/infra/start/build'
import { afterAll, test } from 'vitest'
import { env, install, skip } from '../../../../worker/client/test/installed.ts'
import { chartDir, helm, skip as skipWithoutHelm } from '../../../helm/test/chart.ts'

/** The images take minutes, and the first build of the engine one. */
const parts = ['changelog', 'chart', ...(hasEngine() ? ['engine'] : []), 'client', 'sboms', 'licences']

const dir = await scratchDir({ onTestFinished: afterAll })
const script = join(repositoryDir, 'infra/release/release.sh')
const { version }: { version: string } = JSON.parse(await readFile(join(repositoryDir, 'package.json'), 'utf8'))
const released = await made('release')

/** The folder of one more release. */
async function made(name: string): Promise<string> {
  const outdir = join(dir, name)
  await run('bash', [script, outdir, ...parts])
  return outdir
}

test('the checksums are of every file, and hold', async () => {
  const lines = (await readFile(join(released, 'SHA256SUMS'), 'utf8')).trim().split('\n')
  const listed = lines.map((line) => line.slice(66))
  assert.deepEqual([...listed, 'SHA256SUMS'].sort(), (await readdir(released)).sort())
  for (const line of lines) {
    const contents = await readFile(join(released, line.slice(66)))
    assert.equal(createHash('sha256').update(contents).digest('hex'), line.slice(0, 64), line)
  }
})

test('a file of a release has no address of a registry and no path of this machine in it', async () => {
  for (const name of (await readdir(released)).filter((one) => /\.(json|md)$/.test(one))) {
    const text = await readFile(join(released, name), 'utf8')
    assert.ok(!text.includes(repositoryDir), name)
    assert.doesNotMatch(text, /"type": "distribution"/, name)
  }
})

test('SBOMs name what is installed and what is compiled in, with licences', async () => {
  const names = async (file: string) => {
    const { components }: { components: { purl?: string }[] } = JSON.parse(await readFile(join(released, file), 'utf8'))
    return components.map(({ purl = '' }) => purl.replace(/@[^@]*$/, ''))
  }
  const [gateway, worker, client] = await Promise.all(
    ['gateway', 'worker', 'client'].map((one) => names(`${one}.cdx.json`)),
  )
  assert.ok(gateway?.includes('pkg:npm/fastify') && gateway.includes('pkg:npm/pg'))
  assert.ok(
    worker?.includes('pkg:npm/bullmq') && worker.includes('pkg:npm/argon2') && !worker.includes('pkg:npm/typescript'),
  )
  // Installed with it, installed with that, for hashing, and bundled.
  for (const name of ['ioredis', 'denque', '%40node-rs/argon2', '%40node-rs/bcrypt', 'msgpackr', 'bullmq'])
    assert.ok(client?.includes(`pkg:npm/${name}`), name)
  for (const name of ['pg', 'esbuild', 'fastify']) assert.ok(!client?.includes(`pkg:npm/${name}`), name)
  assert.equal(worker?.includes('pkg:cargo/blake2'), hasEngine())
  assert.match(await readFile(join(released, 'LICENCES.md'), 'utf8'), /^## MIT$/m)
})

const licences = join(repositoryDir, 'infra/release/licences.sh')

/** The page of a release that has packages under these licences. */
async function licenceList(...components: object[]): Promise<string> {
  const folder = await mkdtemp(join(dir, 'licences-'))
  await writeFile(join(folder, 'all.cdx.json'), JSON.stringify({ components }))
  return await run('bash', [licences, folder])
}

const expressions: [string, boolean][] = [
  ['MIT', true],
  ['MIT OR GPL-3.0-only', true],
  ['MIT AND GPL-3.0-only', false],
  ['(MIT OR ISC) AND GPL-3.0-only', false],
  ['MIT/Apache-2.0', true],
  ['MIT WITH LLVM-exception', false],
  ['', false],
]

for (const [expression, met] of expressions) {
  test(`a release ${met ? 'may' : 'must not'} contain a package under "${expression}"`, async () => {
    const listed = licenceList({ name: 'b', version: '1.0.0', licenses: [{ expression }] })
    if (met) assert.match(await listed, /^- b 1\.0\.0$/m)
    else await assert.rejects(listed, /b 1\.0\.0/)
  })
}

test('the list has each package once under its licence, and no package of ours', async () => {
  const mit = [{ license: { id: 'MIT' } }]
  const list = await licenceList(
    { name: 'b', version: '1.0.0', licenses: mit },
    { name: 'a', version: '1.0.0', licenses: mit },
    { name: 'a', version: '1.0.0', licenses: mit },
    { name: 'c', version: '1.0.0', licenses: [{ expression: 'ISC OR GPL-3.0-only' }] },
    { group: '@spillway', name: 'client', version: '1.0.0', licenses: mit },
  )
  assert.match(list, /## MIT\n\n- a 1\.0\.0\n- b 1\.0\.0\n/)
  assert.match(list, /## ISC OR GPL-3\.0-only\n\n- c 1\.0\.0\n/)
  assert.doesNotMatch(list, /spillway\/client/)
})

test('several licences all count, and a sentence or no licence is refused', async () => {
  const refused = (licenses?: object[]) =>
    assert.rejects(licenceList({ name: 'b', version: '1.0.0', licenses }), /b 1\.0\.0/)
  await refused([{ license: { name: 'SEE LICENSE IN LICENSE' } }])
  await refused([{ license: { id: 'MIT' } }, { license: { id: 'SSPL-1.0' } }])
  await refused()
})

test('a folder of something else is not emptied', async () => {
  const other = join(dir, 'other')
  await mkdir(other)
  await writeFile(join(other, 'thesis.txt'), 'years of work')
  await assert.rejects(made('other'), /no release/)
  assert.deepEqual(await readdir(other), ['thesis.txt'])
})

const chartFile = join(released, `spillway-${version}.tgz`)

test('the packed chart has all that it is installed with, and nothing else', () => {
  const entries = execFileSync('tar', ['--list', '--file', chartFile], { encoding: 'utf8' }).trim().split('\n')
  for (const name of [
    'Chart.yaml',
    'values.yaml',
    'values.schema.json',
    'templates/_names.tpl',
    'files/alerts/alerts.yaml',
  ]) {
    assert.ok(entries.includes(`spillway/${name}`), name)
  }
  assert.ok(!entries.some((entry) => entry.startsWith('spillway/ci')))
})

test.skipIf(skipWithoutHelm)('Helm renders the packed chart as it renders the folder', async () => {
  const rendered = (chart: string) => run(helm, ['template', 'release', chart, '--namespace', 'login'])
  assert.equal(await rendered(chartFile), await rendered(chartDir))
})

test.skipIf(skip || (process.platform === 'linux' && hasEngine() ? false : 'no engine was built here'))(
  'an application that installs the package of the engine hashes with it',
  async (t) => {
    const file =
      (await readdir(released)).find((name) =>
        name.startsWith(`spillway-engine-${process.platform}-${process.arch}-`),
      ) ?? ''
    const { application } = await install([join(released, file)], t)
    const manifest = file.replace(/^spillway-(engine-.*)-\d+\.\d+\.\d+\.tgz$/, '@spillway/$1')
    assert.ok(existsSync(join(application, 'node_modules', manifest, 'spillway.node')), manifest)
    const script = `
    const { readFileSync } = require('fs')
    const passwords = require('@spillway/client').createPasswords({ policy: { algorithm: 'bcrypt', cost: 4 }, waitMs: 60_000 })
    passwords.hash('x').then(async () => {
      const pid = readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').trim()
      const addons = () => readFileSync('/proc/' + pid + '/maps', 'utf8').match(/[^ ]*\\.node$/gm)?.join() ?? ''
      // The engine is used a moment later.
      while (!addons().includes('/spillway.node')) await new Promise((resolve) => setTimeout(resolve, 50))
      console.log(addons())
      await passwords.close()
    })`
    const loaded = await run(process.execPath, ['--input-type=commonjs', '-e', script], { cwd: application, env })
    assert.match(loaded, new RegExp(`/node_modules/${manifest}/spillway\\.node`))
    assert.doesNotMatch(loaded, /@spillway\/client\/spillway/)
  },
)
