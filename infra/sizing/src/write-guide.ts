// `pnpm --filter @spillway/infra run guide`: updates the parts of README.md that are made from the figures.
import { writeFileSync } from 'node:fs'
import { readFigures } from './figures.ts'
import { guideFile, guideFor } from './guide.ts'

writeFileSync(guideFile, guideFor(readFigures()))
