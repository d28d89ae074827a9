// The command `pnpm --filter @spillway/infra dashboard`: writes the dashboard that the chart carries from dashboard.yaml.
import { writeFileSync } from 'node:fs'
import { dashboardFile, dashboardJson } from './dashboard.ts'

writeFileSync(dashboardFile, dashboardJson())
