// Which licences may be in a release, and how bills of materials are made the same.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { isAllowed, licenceList } from '../../src/licences.ts'
import { describedVersions } from '../../src/part.ts'
import { type Bom, type Component, reproducible, withComponents } from '../../src/sboms.ts'

const allowed = new Set(['MIT', 'ISC', 'Apache-2.0 WITH LLVM-exception'])
const expressions: [string, boolean][] = [
  ['MIT', true],
  ['GPL-3.0-only', false],
  ['MIT OR GPL-3.0-only', true],
  ['GPL-3.0-only OR MIT', true],
  ['MIT AND GPL-3.0-only', false],
  ['GPL-3.0-only AND MIT', false],
  ['MIT AND ISC', true],
  // AND binds closer than OR.
  ['MIT OR ISC AND GPL-3.0-only', true],
  ['(MIT OR ISC) AND GPL-3.0-only', false],
  ['(GPL-2.0-only OR ISC) AND MIT', true],
  ['MIT/Apache-2.0', true],
  ['Apache-2.0', false],
  ['Apache-2.0 WITH LLVM-exception OR GPL-3.0-only', true],
  ['MIT WITH LLVM-exception', false],
  ['', false],
  ['MIT OR', false],
  ['(MIT', false],
  ['MIT ISC', false],
  ['no licence', false],
]

for (const [expression, met] of expressions) {
  test(`"${expression}" is ${met ? '' : 'not '}met by MIT, ISC and an exception`, () => {
    assert.equal(isAllowed(expression, allowed), met)
  })
}

function component(name: string, ...licenses: NonNullable<Component['licenses']>): Component {
  return { type: 'library', name, version: '1.0.0', purl: `pkg:npm/${name}@1.0.0`, licenses }
}

test('the list has each package once under its licence', () => {
  const list = licenceList([
    component('b', { license: { id: 'MIT' } }),
    component('a', { license: { id: 'MIT' } }),
    component('a', { license: { id: 'MIT' } }),
    component('c', { expression: 'ISC OR GPL-3.0-only' }),
    { ...component('client'), group: '@spillway' },
  ])
  assert.match(list, /## MIT\n\n- a 1\.0\.0\n- b 1\.0\.0\n$/)
  assert.match(list, /## ISC OR GPL-3\.0-only\n\n- c 1\.0\.0\n/)
  assert.doesNotMatch(list, /@spillway/)
})

test('a licence that is not allowed, a sentence, and none at all fail the release, by name', () => {
  const refused = (one: Component) =>
    assert.throws(() => licenceList([component('a', { license: { id: 'MIT' } }), one]), /b 1\.0\.0/)
  refused(component('b', { license: { id: 'AGPL-3.0-only' } }))
  refused(component('b', { license: { name: 'SEE LICENSE IN LICENSE' } }))
  refused(component('b', { license: { id: 'MIT' } }, { license: { id: 'SSPL-1.0' } }))
  refused(component('b'))
})

const reference = {
  type: 'distribution',
  url: 'https://packages.example/a.tgz',
  hashes: [{ alg: 'SHA-512', content: 'ab' }],
}
const bom: Bom = {
  serialNumber: 'urn:uuid:1b2c',
  metadata: { timestamp: '2026-01-02T03:04:05.678Z' },
  components: [
    { ...component('b'), 'bom-ref': 'b', externalReferences: [{ type: 'website', url: 'https://b.example' }] },
    { ...component('a'), 'bom-ref': 'a', externalReferences: [reference] },
  ],
  dependencies: [{ ref: 'b', dependsOn: ['d', 'c'] }, { ref: 'a' }],
}

test('two bills of the same are the same text: order, time, number and registry do not count, digests do', () => {
  const other: Bom = {
    serialNumber: 'urn:uuid:9f8e',
    metadata: { timestamp: '2026-05-06T07:08:09.000Z' },
    components: bom.components
      .map((one) => ({
        ...one,
        ...(one.name === 'a' ? { externalReferences: [{ ...reference, url: 'https://x.example' }] } : {}),
      }))
      .toReversed(),
    dependencies: [{ ref: 'a' }, { ref: 'b', dependsOn: ['c', 'd'] }],
  }
  const [first, second] = [reproducible(bom, 1_000), reproducible(other, 1_000)]
  assert.equal(JSON.stringify(first), JSON.stringify(second))
  assert.equal(first.metadata.timestamp, '1970-01-01T00:16:40.000Z')
  assert.match(first.serialNumber ?? '', /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.deepEqual(first.components[0]?.hashes, reference.hashes)
  const changed = { ...bom, components: bom.components.slice(1) }
  assert.notEqual(reproducible(changed, 1_000).serialNumber, first.serialNumber)
})

test('what is compiled in is added, and what is listed already is not there twice', () => {
  const added = withComponents(bom, [component('a'), component('c')])
  assert.deepEqual(
    added.components.map(({ name }) => name),
    ['b', 'a', 'c'],
  )
})

test('versions are read from a changelog with the days of their release', () => {
  const text = '## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n\n### Added\n\n## [1.1.0]\n\n## [1.0.0] - 2026-11-23\n'
  assert.deepEqual(describedVersions(text), [
    { version: '1.2.0', day: '2026-12-01' },
    { version: '1.0.0', day: '2026-11-23' },
  ])
})
