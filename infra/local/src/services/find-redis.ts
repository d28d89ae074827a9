// Finds a Redis: the PATH, else Debian's package unpacked into the ignored folder, else a container engine.
import { execFileSync } from 'node:child_process'
import { UserError } from '../processes/user-error.ts'
import { aptProgram } from './apt-packages.ts'
import { onPath } from './on-path.ts'
import { containerRedis } from './redis-container.ts'
import { localProgram, type RedisProgram, type RedisSearch, serverNames } from './redis-program.ts'

/** One place that a Redis may come from: undefined where it does not apply, a rejection where it should have worked. */
type RedisSource = (search: RedisSearch) => Promise<RedisProgram | undefined>

/** From the least to the most intrusive; none installs anything. */
const sources: RedisSource[] = [pathRedis, aptRedis, containerRedis]

/** The first Redis that works. Rejects with a UserError that says why each source that applied did not. */
export async function findRedis(search: RedisSearch): Promise<RedisProgram> {
  const failures: string[] = []
  for (const source of sources) {
    try {
      const program = await source(search)
      if (program) return program
    } catch (error) {
      if (search.keeper.closing) throw error
      failures.push(error instanceof Error ? error.message : String(error))
    }
  }
  const why = failures.length > 0 ? ` (${failures.join('; ')})` : ''
  throw new UserError(
    'No Redis could be had: install redis-server or valkey-server, start Docker or Podman, ' +
      `or set REDIS_URL to a Redis of your own.${why}`,
  )
}

async function pathRedis({ dir }: RedisSearch): Promise<RedisProgram | undefined> {
  const command = onPath(serverNames)
  if (command === undefined) return undefined
  execFileSync(command, ['--version'], { stdio: 'ignore' })
  return localProgram(command, dir)
}

/** An unpacked Redis or Valkey, fetched at the first call. Undefined on systems without apt. */
export async function aptRedis({ keeper, dir, programsDir, say }: RedisSearch): Promise<RedisProgram | undefined> {
  const announce = (): void =>
    say('No Redis on the PATH: fetching one with apt-get (into the ignored folder; nothing is installed).')
  const names = { name: 'redis', packages: serverNames, commands: serverNames }
  const program = await aptProgram({ keeper, programsDir, ...names, announce })
  return program && localProgram(program.command, dir, program.env)
}
