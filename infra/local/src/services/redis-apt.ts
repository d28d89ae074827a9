// Redis, or Valkey in its place, from the packages of Debian and Ubuntu, unpacked into the ignored folder.
import { aptProgram } from './apt-packages.ts'
import { localProgram, type RedisProgram, type RedisSearch, serverNames } from './redis-program.ts'

/** An unpacked Redis, fetched at the first call. Undefined on systems without apt. */
export async function aptRedis({ keeper, dir, programsDir, say }: RedisSearch): Promise<RedisProgram | undefined> {
  const program = await aptProgram({
    keeper,
    programsDir,
    name: 'redis',
    packages: serverNames,
    commands: serverNames,
    announce: () =>
      say('No Redis on the PATH: fetching one with apt-get (into the ignored folder; nothing is installed).'),
  })
  return program && localProgram(program.command, dir, program.env)
}
