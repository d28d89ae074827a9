// One version: what is released together says so, and the changelog describes it.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { test } from 'vitest'
import { parse } from 'yaml'

const read = (path: string) => readFile(join(repositoryDir, path), 'utf8')
const {
  version,
  scripts,
  packageManager,
}: { version: string; scripts: Record<string, string>; packageManager: string } = JSON.parse(await read('package.json'))

test('every package, the chart, the engine and the images in the READMEs have the version of package.json', async () => {
  const { packages }: { packages: string[] } = parse(await read('pnpm-workspace.yaml'))
  assert.ok(packages.length > 5)
  for (const folder of packages) {
    const manifest: { version: string } = JSON.parse(await read(`${folder}/package.json`))
    assert.equal(manifest.version, version, folder)
  }
  const chart: { version: string; appVersion: string } = parse(await read('infra/helm/spillway/Chart.yaml'))
  assert.deepEqual([chart.version, chart.appVersion], [version, version])
  for (const file of ['worker/engine/Cargo.toml', 'worker/engine/Cargo.lock']) {
    assert.equal(/^name = "spillway-engine"\nversion = "(.+)"$/m.exec(await read(file))?.[1], version, file)
  }
  for (const file of ['infra/docker/README.md', 'infra/helm/spillway/README.md']) {
    const tags = (await read(file)).matchAll(/\bspillway\/(?:gateway|worker|\$image):([\w.-]+)/g)
    for (const [, tag] of tags) assert.equal(tag, version, file)
  }
})

test('the changelog is in its form, from the latest version to the first, and describes this one', async () => {
  const text = await read('.github/CHANGELOG.md')
  const releases = text.matchAll(/^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$/gm)
  const described = [...releases].map(([, version = '', day = '']) => ({ version, day }))
  assert.ok(described.some((one) => one.version === version))
  assert.deepEqual(
    described,
    described.toSorted((a, b) => (a.day < b.day ? 1 : a.day > b.day ? -1 : 0)),
  )
  const headings = text.match(/^## .*$/gm) ?? []
  assert.equal(headings.length, described.length + 1, headings.join())
  assert.equal(headings[0], '## [Unreleased]')
  for (const [, kind = ''] of text.matchAll(/^### (.*)$/gm)) {
    assert.match(kind, /^(Added|Changed|Deprecated|Removed|Fixed|Security)$/)
  }
})

const { scripts: ofInfra }: { scripts: Record<string, string> } = JSON.parse(await read('infra/package.json'))

test('what the workflows run is there, and their pnpm is the version in package.json', async () => {
  for (const name of ['ci', 'kind', 'release']) {
    const text = await read(`.github/workflows/${name}.yaml`)
    const { jobs }: { jobs: Record<string, { steps: { run?: string }[] }> } = parse(text)
    const commands = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = '' }) => run.split('\n')))
    assert.ok(commands.some(Boolean))
    for (const command of commands) {
      const [, file] = /^bash (\S+)$/.exec(command) ?? []
      if (file !== undefined) await read(file)
      const [, pnpm, infra, script = ''] =
        /\bnpx --yes (pnpm\S*) (--filter @spillway\/infra )?(\S+)/.exec(command) ?? []
      if (pnpm === undefined) continue
      assert.equal(pnpm, packageManager)
      assert.ok(script === 'install' || script in (infra === undefined ? scripts : ofInfra), command)
    }
  }
})
