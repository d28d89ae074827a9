// `pnpm --filter @spillway/sizing guide`: brings what README.md takes from the figures up to date.
import { writeFileSync } from 'node:fs'
import { readFigures } from './figures.ts'
import { guideFile, guideFor } from './guide.ts'

writeFileSync(guideFile, guideFor(readFigures()))
