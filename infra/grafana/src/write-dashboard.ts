// The command `pnpm dashboard`: writes dashboards/spillway.json from the rows.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { dashboardFile, dashboardJson } from './dashboard.ts'

mkdirSync(dirname(dashboardFile), { recursive: true })
writeFileSync(dashboardFile, dashboardJson())
