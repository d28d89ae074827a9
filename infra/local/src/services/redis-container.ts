// Redis in a container, where Docker or Podman answers.
import { createHash } from 'node:crypto'
import { onPath } from './on-path.ts'
import type { RedisProgram, RedisSearch } from './redis-program.ts'

const image = 'redis:8-alpine'

/** Redis with its data in a volume named after its folder; undefined where no engine answers. */
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
    // A container that a killed run left behind.
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
