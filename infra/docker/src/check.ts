// The command `pnpm check:images`: builds the images as plain folders, and runs all their tests and
// linters.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { report } from '@spillway/local/refusal'
import { fetchComposeSchema } from './compose-schema.ts'
import { fetchHadolint } from './hadolint.ts'
import { buildImages } from './images.ts'

try {
  await Promise.all([fetchHadolint(), fetchComposeSchema()])
  await buildImages(console.log)
  const packageDir = fileURLToPath(new URL('..', import.meta.url))
  const harness = fileURLToPath(import.meta.resolve('@spillway/local/test-package'))
  const tests = spawn(process.execPath, ['--import', 'tsx', harness], { cwd: packageDir, stdio: 'inherit' })
  const [code] = await once(tests, 'exit')
  process.exitCode = code === 0 ? 0 : 1
} catch (error) {
  report(error)
  process.exitCode = 1
}
