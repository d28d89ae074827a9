// The pages on security name tests that exist, and the table of OWASP ASVS requirements is whole.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { satisfies, validRange } from 'semver'
import { test } from 'vitest'
import { repositoryDir } from '../../src/processes/repository.ts'

const pagesDir = join(repositoryDir, '.github')
/**
 * A link to a file in the repository, and the tests of it that are named: `[title](path): *first
 * words…*, *…last words*`.
 */
const LINK = /\]\((\.\.\/[^)#]+)\)((?:(?:: |, )\*[^*]+\*)*)/g

for (const [page, least] of [
  ['ASVS.md', 30],
  ['SECURITY.md', 80],
] as const) {
  test(`every file that ${page} names exists, and has the tests that are named of it`, () => {
    let named = 0
    for (const [, path = '', tests = ''] of readFileSync(join(pagesDir, page), 'utf8').matchAll(LINK)) {
      const file = join(pagesDir, path)
      assert.ok(existsSync(file), path)
      for (const [, name = ''] of tests.matchAll(/\*([^*]+)\*/g)) {
        named += 1
        assert.ok(hasTest(file, name), `${path} has no test "${name}"`)
      }
    }
    assert.ok(named > least, `${named} tests are named`)
  })
}

/** Whether a file has a test whose title fits, where `…` stands for anything. */
function hasTest(file: string, name: string): boolean {
  const titles = [
    ...readFileSync(file, 'utf8').matchAll(/(?:test|describe)(?:\.concurrent|\.each\(.+?\))?\(\s*(['"`])(.+?)\1/g),
  ].map(([, , title = '']) => title)
  const [first = '', ...others] = name.split('…').map((part) => part.trim())
  return titles.some((title) => title.startsWith(first) && others.every((part) => title.includes(part)))
}

/** A package of the lockfile, and the Node that it asks for. */
const ENGINES = /^ {2}(\S+):\n {4}resolution: .*\n {4}engines: \{.*?node: '?([^',}]+)/gm

// So that no install warns.
test('no package of the lockfile asks for more than the Node that package.json does', async () => {
  const { engines } = JSON.parse(await readFile(join(repositoryDir, 'package.json'), 'utf8'))
  const oldest = `${/^>=(\d+\.\d+)$/.exec(engines.node)?.[1]}.0`
  const lockfile = await readFile(join(repositoryDir, 'pnpm-lock.yaml'), 'utf8')
  const wanted = [...lockfile.matchAll(ENGINES)].map(([, name, node = '']) => [name, node])
  assert.equal(wanted.length, lockfile.match(/^ {4}engines: .*node:/gm)?.length)
  const newer = wanted.filter(([, node = '']) => validRange(node) === null || !satisfies(oldest, node))
  assert.deepEqual(newer, [])
})

/** How many requirements each section of ASVS 5.0.0 has. */
const sections: Record<string, number> = {
  ...{ '6.1': 3, '6.2': 12, '6.3': 8, '6.4': 6, '6.5': 8, '6.6': 4, '6.7': 2, '6.8': 4 },
  ...{ '7.1': 3, '7.2': 4, '7.3': 2, '7.4': 5, '7.5': 3, '7.6': 2 },
  ...{ '9.1': 3, '9.2': 4 },
}

const rows = readFileSync(join(pagesDir, 'ASVS.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| \d/.test(line))
  .map((line) => {
    const [ids = '', , , verdict, by = ''] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
    return { ids: ids.split(', '), verdict, by }
  })

test('every requirement has one row, in order', () => {
  const all = Object.entries(sections).flatMap(([section, count]) =>
    Array.from({ length: count }, (_, n) => `${section}.${n + 1}`),
  )
  assert.deepEqual(
    rows.flatMap(({ ids }) => ids),
    all,
  )
})

test('every row is met, not met, or not applicable, and says by what or why', () => {
  for (const { ids, verdict, by } of rows) {
    assert.ok(verdict === 'met' || verdict === 'not met' || verdict === 'not applicable', `${ids}: ${verdict}`)
    assert.ok(by.length > 0, ids.join())
  }
})
