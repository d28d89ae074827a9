// The Dockerfile and the compose file, by those who know them.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import { composeSchema } from '../src/compose-schema.ts'
import { hadolint } from '../src/hadolint.ts'
import { dockerfile } from '../src/recipe.ts'

const fetched = (path: string): string | false => (existsSync(path) ? false : 'not fetched yet: run pnpm check:images')
const composeFile = new URL('../compose.yaml', import.meta.url)

test('the linter for Dockerfiles has nothing to say', { skip: fetched(hadolint) }, () => {
  execFileSync(hadolint, [dockerfile], { stdio: 'pipe' })
  const { status, stdout } = spawnSync(hadolint, ['-'], { input: 'FROM node\nRUN cd /tmp\n', encoding: 'utf8' })
  assert.equal(status, 1)
  assert.match(stdout, /DL3006/)
})

test('the compose file has the fields that compose files have', { skip: fetched(composeSchema) }, async () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })
  const validate = ajv.compile(JSON.parse(await readFile(composeSchema, 'utf8')))
  const text = await readFile(composeFile, 'utf8')
  assert.ok(validate(parse(text, { merge: true })), JSON.stringify(validate.errors))
  assert.ok(!validate(parse(text.replace('stop_grace_period', 'stop_grace'), { merge: true })))
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
      assert.ok(existsSync(path) || path.pathname.includes('/alerts/') || path.pathname.includes('/grafana/'), volume)
    }
  }
})
