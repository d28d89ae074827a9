// The image that ours stand on, fetched from its registry without a container engine, by crane. Needs Go, which builds crane.
import { join } from 'node:path'
import { buildPrograms } from '@spillway/helm/programs'
import { UserError } from '@spillway/local/processes/command-line'
import { defaultStateDir } from '@spillway/local/processes/repository'
import { run } from '@spillway/local/processes/run'
import { makeOnce } from '@spillway/local/services/apt-packages'
import { readRecipe } from './recipe.ts'

/** What registries call the processors of this machine. */
export const architecture = process.arch === 'x64' ? 'amd64' : process.arch

/** The name of the image that both of ours begin with. */
export function baseName(): string {
  const base = readRecipe().find(({ name }) => name === 'runtime')?.base
  if (base === undefined) throw new UserError('The Dockerfile has no stage runtime.')
  return base
}

/** A folder in the layout of OCI with the base for the processors of this machine, kept for the next time. */
export async function fetchBase(say: (sentence: string) => void): Promise<string> {
  const name = baseName()
  const dir = join(defaultStateDir, 'bases', `${name.replace(':', '-')}-${architecture}`)
  const crane = join(await buildPrograms('registry', say), 'crane')
  await makeOnce(dir, (partial) => pullImage(crane, name, partial))
  return dir
}

/** Fetches an image for the processors of this machine into an empty folder, by its name. */
export async function pullImage(crane: string, name: string, dir: string): Promise<void> {
  await run(crane, ['pull', '--format=oci', `--platform=linux/${architecture}`, name, dir])
}
