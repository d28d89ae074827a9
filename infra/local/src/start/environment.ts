// The environment of the local commands, read once.
import { resolve } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'

export type LocalEnvironment = ReturnType<typeof readEnvironment>

/** Throws a UserError that names an invalid variable. An empty variable counts as unset. */
export function readEnvironment(env: NodeJS.ProcessEnv) {
  return {
    /** The first gateway's ports; 0 for any free ones. */
    port: port(env, 'PORT', 3000),
    opsPort: port(env, 'OPS_PORT', 9464),
    /** Undefined unless the service API is on. */
    servicePort: env.SERVICE_KEYS ? port(env, 'SERVICE_PORT', 3100) : undefined,
    /** The interface on which gateways listen. */
    host: env.HOST || '127.0.0.1',
    databaseUrl: env.DATABASE_URL || undefined,
    redisUrl: env.REDIS_URL || undefined,
    stateDir: env.SPILLWAY_DIR ? resolve(repositoryDir, env.SPILLWAY_DIR) : defaultStateDir,
    /** The whole environment, for the gateways and workers. */
    inherited: env,
  }
}

function port(env: NodeJS.ProcessEnv, name: string, byDefault: number): number {
  const text = env[name]
  if (!text) return byDefault
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new UserError(`${name} must be a port from 0 to 65535, not "${text}".`)
}
