// The command `pnpm check:infra`: builds what the checks of the chart need, at the first time, and runs them all.
import { checkPackage } from './check-package.ts'
import { buildPrograms } from './programs.ts'
import { writeSchemas } from './schemas/write.ts'

await checkPackage(new URL('..', import.meta.url), async () => {
  await buildPrograms('checks', console.log)
  await writeSchemas()
})
