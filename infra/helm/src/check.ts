// The first half of `pnpm check:infra`: builds what the tests of the chart need, unless it is there.
import { report } from '@spillway/local/processes/user-error'
import { buildPrograms } from './programs.ts'
import { writeSchemas } from './schemas/write.ts'

try {
  await buildPrograms('checks', console.log)
  await writeSchemas()
} catch (error) {
  report(error)
  process.exitCode = 1
}
