// Requirements on the platform.
import { UserError } from '../processes/user-error.ts'

/** Throws a UserError on a Node that is too old, and on Windows itself. */
export function checkPlatform(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 19)) {
    throw new UserError(
      `Spillway needs Node 20.19 or newer, and this is ${process.versions.node}: install a newer one.`,
    )
  }
  if (process.platform === 'win32') throw new UserError('Redis does not run on Windows itself: use WSL 2.')
}
