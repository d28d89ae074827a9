// A container without an engine: an image's command in its folder, as its user, on a file system that takes no writes.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Image } from './follow.ts'

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
