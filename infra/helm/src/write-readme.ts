// `pnpm --filter @spillway/helm readme`: brings the table of values in the chart's README up to date.
import { writeFile } from 'node:fs/promises'
import { readmeFile, readmeWithTable } from './values-table.ts'

await writeFile(readmeFile, await readmeWithTable())
