// `pnpm --filter @spillway/infra run readme`: updates the table of values in the chart's README.
import { writeFile } from 'node:fs/promises'
import { readmeFile, readmeWithTable } from './chart.ts'

await writeFile(readmeFile, await readmeWithTable())
