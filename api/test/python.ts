// A Python with packages of its own, made once for this checkout.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { programsDir } from '@spillway/infra/processes/repository'
import { onPath } from '@spillway/infra/processes/run'

const run = promisify(execFile)
/** A machine that cannot have the packages by then goes without: less than a test file may take. */
const INSTALL_MS = 130_000

/** The interpreter; undefined without python3 and venv, or without the packages. */
export async function pythonWith(packages: readonly string[]): Promise<string | undefined> {
  const home = join(programsDir, packages.join('-').replaceAll('==', '-'))
  const interpreter = (dir: string) => join(dir, 'bin/python')
  const installed = onPath(['python3'])
  if (existsSync(interpreter(home)) || installed === undefined) return installed && interpreter(home)
  await mkdir(programsDir, { recursive: true })
  const dir = await mkdtemp(`${home}-`)
  try {
    const timeout = INSTALL_MS / 2
    await run(installed, ['-m', 'venv', dir], { timeout })
    await run(interpreter(dir), ['-m', 'pip', 'install', '--quiet', ...packages], { timeout })
    // Somebody else may have been first; theirs is the same.
    await rename(dir, home).catch(() => undefined)
    return interpreter(home)
  } catch {
    return undefined
  } finally {
    // A process that was told to stop may still be writing.
    await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}
