// The guide says what the calculator says.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'vitest'
import { readFigures } from '../../src/figures.ts'
import { guideFile, guideFor } from '../../src/guide.ts'

test("the guide's tables are those of the figures", () => {
  const hint = 'bring it up to date by: pnpm --filter @spillway/infra run guide'
  assert.equal(readFileSync(guideFile, 'utf8'), guideFor(readFigures()), hint)
})
