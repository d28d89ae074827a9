// The command `pnpm check:infra`: builds what the checks of the chart need, at the first time, and runs them all.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { report } from '@spillway/local/refusal'
import { buildPrograms } from './programs.ts'
import { writeSchemas } from './schemas/write.ts'

try {
  await buildPrograms('checks', console.log)
  await writeSchemas()
  const packageDir = fileURLToPath(new URL('..', import.meta.url))
  const harness = fileURLToPath(import.meta.resolve('@spillway/local/test-package'))
  const tests = spawn(process.execPath, ['--import', 'tsx', harness], { cwd: packageDir, stdio: 'inherit' })
  const [code] = await once(tests, 'exit')
  process.exitCode = code === 0 ? 0 : 1
} catch (error) {
  report(error)
  process.exitCode = 1
}
