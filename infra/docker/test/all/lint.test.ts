// The Dockerfile and the compose file, by those who know them.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scratchDir } from '@spillway/infra/rig/namespace'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { test } from 'vitest'
import { parse } from 'yaml'
import { hadolint, schemasDir } from '../../../helm/src/programs.ts'
import { dockerfile } from '../../src/engine.ts'

const fetched = (path: string): string | false =>
  existsSync(path) ? false : 'not fetched yet: run pnpm --filter @spillway/infra check'
const composeSchema = join(await schemasDir(), 'compose-spec.json')
const composeFile = new URL('../../compose.yaml', import.meta.url)

test.skipIf(fetched(hadolint))('the linter for Dockerfiles has nothing to say', () => {
  execFileSync(hadolint, [dockerfile], { stdio: 'pipe' })
  const { status, stdout } = spawnSync(hadolint, ['-'], { input: 'FROM node\nRUN cd /tmp\n', encoding: 'utf8' })
  assert.equal(status, 1)
  assert.match(stdout, /DL3006/)
})

test.skipIf(fetched(composeSchema))('the compose file has the fields that compose files have', async () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })
  const validate = ajv.compile(JSON.parse(await readFile(composeSchema, 'utf8')))
  const text = await readFile(composeFile, 'utf8')
  assert.ok(validate(parse(text, { merge: true })), JSON.stringify(validate.errors))
  assert.ok(!validate(parse(text.replace('stop_grace_period', 'stop_grace'), { merge: true })))
})

test('images run as a user other than root, and are built on a base of an exact version', async () => {
  const text = await readFile(dockerfile, 'utf8')
  const stages = [...text.matchAll(/^FROM (\S+) AS (\S+)\n((?:(?!^FROM ).*\n?)*)/gm)]
  assert.deepEqual(
    stages.map(([, , name]) => name),
    ['build', 'engine', 'runtime', 'worker', 'gateway'],
  )
  for (const [, base = '', name = '', steps = ''] of stages) {
    if (['worker', 'gateway'].includes(name)) {
      assert.equal(base, 'runtime')
      assert.doesNotMatch(steps, /^(USER|RUN) /m)
    } else assert.match(base, /^[a-z]+:\d+\.\d+\.\d+-[a-z-]+$/)
    if (name === 'runtime') assert.match(steps, /^USER [1-9]\d*:[1-9]\d*$/m)
  }
})

test('every image of the compose file is of an exact version, and what it mounts is there', async () => {
  const { services }: { services: Record<string, { image: string; volumes?: string[] }> } = parse(
    await readFile(composeFile, 'utf8'),
    { merge: true },
  )
  for (const [name, { image, volumes = [] }] of Object.entries(services)) {
    assert.match(image, /^(spillway\/\w+:local|[\w/]+:v?\d+\.\d+\.\d+[\w-]*|[\w/]+:\d+\.\d+-\w+)$/, name)
    for (const volume of volumes.filter((one) => one.startsWith('.'))) {
      const path = new URL(volume.split(':')[0] ?? '', composeFile)
      assert.ok(existsSync(path), volume)
    }
  }
})

test('workers see the seal keys and no other, gateways all, the rest none; each finds the files that it reads', async (t) => {
  interface Service {
    environment?: Record<string, string>
    volumes?: string[]
  }
  const { services }: { services: Record<string, Service> } = parse(await readFile(composeFile, 'utf8'), {
    merge: true,
  })
  const keys = await scratchDir(t)
  execFileSync(process.execPath, [fileURLToPath(new URL('../../make-keys.mjs', import.meta.url)), keys])
  /** A volume's files are found where the service that makes the keys mounts it. */
  const mounts = ({ volumes = [] }: Service) =>
    volumes.map((volume) => volume.split(':')).filter(([name]) => name?.endsWith('-keys'))
  const made = new Map(
    (services.keys ? mounts(services.keys) : []).map(([name, path = '']) => [name, path.replace('/keys', keys)]),
  )
  const seen = (service: Service) =>
    mounts(service).flatMap(([name, path]) => readdirSync(made.get(name) ?? '').map((file) => `${path}/${file}`))
  const all = ['/keys/seal/seal-keys', '/keys/gateway/jwt-keys', '/keys/gateway/ops-password']
  for (const [name, service] of Object.entries(services).filter(([name]) => name !== 'keys')) {
    const expected = name === 'gateway' ? all : name === 'worker' ? all.slice(0, 1) : []
    assert.deepEqual(seen(service).sort(), expected.toSorted(), name)
    const read = Object.entries(service.environment ?? {}).flatMap(([variable, path]) =>
      variable.endsWith('_FILE') ? [path] : [],
    )
    assert.deepEqual(read.toSorted(), expected.toSorted(), name)
  }
})
