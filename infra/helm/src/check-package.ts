// What the commands that check a package do alike: make what its tests cannot do without, then run them all.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { report } from '@spillway/local/processes/user-error'

/**
 * Prepares and runs the tests of a package, whose folder is given as a URL. What goes wrong is told, and left in the exit code of
 * this process.
 */
export async function checkPackage(packageUrl: URL, prepare: () => Promise<unknown>): Promise<void> {
  try {
    await prepare()
    const harness = fileURLToPath(import.meta.resolve('@spillway/local/testing/package'))
    const tests = spawn(process.execPath, ['--import', 'tsx', harness], {
      cwd: fileURLToPath(packageUrl),
      stdio: 'inherit',
    })
    const [code] = await once(tests, 'exit')
    process.exitCode = code === 0 ? 0 : 1
  } catch (error) {
    report(error)
    process.exitCode = 1
  }
}
