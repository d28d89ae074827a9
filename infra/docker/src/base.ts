// The image that ours stand on, fetched from its registry without a container engine, by crane. Needs Go, which builds crane.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { buildPrograms } from '@spillway/helm/programs'
import { UserError } from '@spillway/local/processes/command-line'
import { defaultStateDir } from '@spillway/local/processes/repository'
import { run } from '@spillway/local/processes/run'
import { makeOnce } from '@spillway/local/services/apt-packages'
import type { Image } from './follow.ts'
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

// A container without an engine: an image's command in its folder, as its user, on a file system that takes no writes.

/** Makes every file system of a namespace of its own read-only, then becomes the user. Each program replaces the one before. */
const CONFINE =
  'uid=$1 gid=$2; shift 2; mount -o remount,bind,ro / && exec setpriv --reuid "$uid" --regid "$gid" --clear-groups -- "$@"'

/** Whether this process may do what {@link CONFINE} does. Others run images as the user that they are. */
export const canConfine = process.getuid?.() === 0 && existsSync('/usr/bin/unshare') && existsSync('/usr/bin/setpriv')

/**
 * How a container of an image is started: `args` in the place of the image's command, `env` on top of its environment.
 * The process that is started becomes the container's own, so signals and exit codes are the container's.
 */
export function containerCommand(image: Image, { args = image.cmd, env = {} as NodeJS.ProcessEnv } = {}) {
  const [program = '', ...rest] = [...image.entrypoint, ...args]
  const shared = { cwd: join(image.root, image.workdir), env: { PATH: process.env.PATH, ...image.env, ...env } }
  if (!canConfine) return { ...shared, command: program, args: rest }
  return {
    ...shared,
    command: 'unshare',
    args: ['--mount', 'sh', '-c', CONFINE, 'sh', String(image.uid), String(image.gid), program, ...rest],
  }
}
