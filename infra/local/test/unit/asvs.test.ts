// The table of OWASP ASVS requirements is whole.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'vitest'
import { repositoryDir } from '../../src/processes/repository.ts'

const page = readFileSync(join(repositoryDir, '.github/ASVS.md'), 'utf8')

/** How many requirements each section of ASVS 5.0.0 has. */
const sections: Record<string, number> = {
  ...{ '6.1': 3, '6.2': 12, '6.3': 8, '6.4': 6, '6.5': 8, '6.6': 4, '6.7': 2, '6.8': 4 },
  ...{ '7.1': 3, '7.2': 4, '7.3': 2, '7.4': 5, '7.5': 3, '7.6': 2 },
  ...{ '9.1': 3, '9.2': 4 },
}

const rows = page
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
