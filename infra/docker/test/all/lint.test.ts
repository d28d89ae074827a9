// The Dockerfile and the compose file, by those who know them.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dockerfile } from '@spillway/infra/docker/engine'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { hadolint, schemasDir } from '@spillway/infra/helm/programs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { test } from 'vitest'
import { parse } from 'yaml'

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
