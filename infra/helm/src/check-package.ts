// What the commands that check a package do alike: make what its tests cannot do without, then run them all.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { repositoryDir } from '@spillway/local/processes/repository'
import { report } from '@spillway/local/processes/user-error'

/**
 * Prepares and runs the tests of a package, whose folder is given as a URL. What goes wrong is told, and left in the exit code of
 * this process.
 */
export async function checkPackage(packageUrl: URL, prepare: () => Promise<unknown>): Promise<void> {
  try {
    await prepare()
    const run = fileURLToPath(import.meta.resolve('@spillway/local/testing/run'))
    const files = `${relative(repositoryDir, fileURLToPath(packageUrl))}/`
    const tests = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), run, files], { stdio: 'inherit' })
    const [code] = await once(tests, 'exit')
    process.exitCode = code === 0 ? 0 : 1
  } catch (error) {
    report(error)
    process.exitCode = 1
  }
}
