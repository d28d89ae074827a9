// `pnpm --filter @spillway/helm files`: copies the rules and dashboards into the chart.
import { writeCarriedFiles } from './carried-files.ts'

await writeCarriedFiles()
