// The first half of `pnpm --filter @spillway/infra check:helm`: builds what the tests of the chart need, unless it is there.
import { runCommand } from '@spillway/infra/processes/command'
import { buildPrograms } from './programs.ts'
import { writeSchemas } from './schemas.ts'

await runCommand(async () => {
  await buildPrograms('checks', console.log)
  await writeSchemas()
})
