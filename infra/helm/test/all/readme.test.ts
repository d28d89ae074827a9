// The chart's pages say what the chart does.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'vitest'
import { render, skip } from '../programs.ts'
import { readmeFile, readmeWithTable } from '../values-table.ts'

test('the table of values in the README is current', async () => {
  const current = await readmeWithTable()
  if (process.env.SPILLWAY_WRITE_PAGES === 'true') await writeFile(readmeFile, current)
  assert.equal(
    await readFile(readmeFile, 'utf8'),
    current,
    'bring it up to date by: SPILLWAY_WRITE_PAGES=true npx --yes pnpm test infra/helm/test/all/readme',
  )
})

test('while a key is replaced, every process opens what those of the step before and after seal', async () => {
  const page = await readFile(readmeFile.replace('README', 'OPERATIONS'), 'utf8')
  // The value of the Secret at each step: the first key seals, all open.
  const steps = [...page.matchAll(/^\d\. `(k\d:.+?)`/gm)].map(([, keys = '']) => keys.match(/k\d(?=:)/g) ?? [])
  assert.equal(steps.length, 3)
  const values = [['k1'], ...steps]
  assert.deepEqual(values.at(-1), ['k2'])
  for (const [step, after] of values.slice(1).entries()) {
    const before = values[step] ?? []
    assert.ok(after.includes(before[0] ?? ''), `step ${step + 1} does not open what is still sealed with ${before[0]}`)
    assert.ok(before.includes(after[0] ?? ''), `step ${step + 1} seals with ${after[0]}, which others do not have yet`)
  }
})

test.skipIf(skip)(
  'images that are built and installed as the READMEs say are those that the pods ask for',
  async () => {
    const built = await readFile(new URL('../../../docker/README.md', import.meta.url), 'utf8')
    const commands = (await readFile(readmeFile, 'utf8')).match(/^```sh\n[^`]*helm install[^`]*```/m)?.[0] ?? ''
    const pushed = [...commands.matchAll(/docker push (\S+)/g)].map(([, image]) => image)
    const set = [...commands.matchAll(/--set (\S+\.image\.repository=\S+)/g)].map(([, value = '']) => value)
    const imagesOf = (yaml: string): string[] => [
      ...new Set([...yaml.matchAll(/ image: (\S+)/g)].map(([, name = '']) => name)),
    ]
    const unchanged = imagesOf(await render({}))
    assert.equal(unchanged.length, 2)
    for (const image of unchanged) assert.match(built, new RegExp(`--tag ${image} `))
    assert.deepEqual(imagesOf(await render({ set })).sort(), pushed.sort())
  },
)
