// How a rival is started: one program of this package that serves the whole API and says which processes it consists of.
import type { Part, Running, StartOptions } from './contender.ts'
import { compiled, startProgram } from './program.ts'

/** Starts `contenders/<name>/server`, with settings of its own on top of what every rival gets. */
export async function startRival(
  name: string,
  options: StartOptions,
  env: Record<string, string> = {},
): Promise<Running> {
  const program = await startProgram({
    path: compiled(`contenders/${name}/server`),
    cores: options.cores,
    env: {
      DATABASE_URL: options.services.databaseUrl,
      ALGORITHM: options.algorithm,
      ...env,
    },
  })
  return {
    url: String(program.ready.url),
    neighbourPath: '/neighbour',
    parts: [{ role: 'api', pid: program.pid, readyMs: program.readyMs }, ...parts(program.ready.parts)],
    close: program.close,
  }
}

function parts(said: unknown): Part[] {
  if (!Array.isArray(said)) return []
  return said.map((part) => ({ role: String(part.role), pid: Number(part.pid) }))
}
