// Redis from what the system offers where nothing can be unpacked: Homebrew, a container engine, and, as root and as the
// last resort, the package manager.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { onPath } from './on-path.ts'
import { localProgram, type RedisProgram, type RedisSearch, serverNames } from './redis-program.ts'

const image = 'redis:8-alpine'

/** Homebrew's Redis, installed if need be: into Homebrew's own folder, which needs no root. */
export async function brewRedis({ keeper, dir, say }: RedisSearch): Promise<RedisProgram | undefined> {
  // Homebrew refuses to run as root.
  if (onPath(['brew']) === undefined || process.getuid?.() === 0) return undefined
  const prefix = (await keeper.run({ command: 'brew', args: ['--prefix'] })).trim()
  const installed = (): string | undefined => onPath(serverNames, [join(prefix, 'bin')])
  if (installed() === undefined) {
    say('No Redis on the PATH: installing one with brew.')
    await keeper.run({
      command: 'brew',
      args: ['install', '--quiet', 'redis'],
      env: { ...process.env, HOMEBREW_NO_AUTO_UPDATE: '1' },
    })
  }
  const command = installed()
  return command === undefined ? undefined : localProgram(command, dir)
}

/** Redis in a container, its data in a volume named after its folder, if an engine answers. */
export async function containerRedis({ keeper, dir, durable, say }: RedisSearch): Promise<RedisProgram | undefined> {
  const name = `spillway-${createHash('sha256').update(dir).digest('hex').slice(0, 12)}`
  for (const engine of ['docker', 'podman']) {
    const run = (...args: string[]): Promise<boolean> =>
      keeper.run({ command: engine, args }).then(
        () => true,
        () => false,
      )
    if (onPath([engine]) === undefined || !(await run('info'))) continue
    say(`No Redis on the PATH: running ${image} with ${engine}.`)
    await keeper.run({ command: engine, args: ['pull', '--quiet', image] })
    // One that a killed run left behind.
    await run('rm', '--force', name)
    return (port) => {
      const where = ['--name', name, '--publish', `127.0.0.1:${port}:6379`]
      if (durable) where.push('--volume', `${name}:/data`)
      return {
        process: { command: engine, args: ['run', '--rm', '--interactive', ...where, image, 'redis-server', '-'] },
        settings: { bind: '0.0.0.0', port: '6379', dir: '/data' },
      }
    }
  }
  return undefined
}

const installers: Record<string, string[]> = {
  'apt-get': ['install', '-y', '--no-install-recommends', 'redis-server'],
  dnf: ['install', '-y', 'valkey'],
  apk: ['add', 'valkey'],
  pacman: ['-S', '--noconfirm', 'valkey'],
}

/** Installs Redis or Valkey system-wide. Only root may, and only here is anything outside the checkout changed. */
export async function systemRedis({ keeper, dir, say }: RedisSearch): Promise<RedisProgram | undefined> {
  if (process.getuid?.() !== 0) return undefined
  for (const [command, args] of Object.entries(installers)) {
    if (onPath([command]) === undefined) continue
    say(`No Redis on the PATH: installing one system-wide with ${command}.`)
    await keeper.run({ command, args })
    const installed = onPath(serverNames)
    if (installed !== undefined) return localProgram(installed, dir)
  }
  return undefined
}
