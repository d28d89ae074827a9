// The command `pnpm dashboard`: writes the dashboard that the chart carries from the rows.
import { writeFileSync } from 'node:fs'
import { dashboardFile, dashboardJson } from './dashboard.ts'

writeFileSync(dashboardFile, dashboardJson())
