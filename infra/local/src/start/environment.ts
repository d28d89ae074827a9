// The environment of the local commands, read once.
import { resolve } from 'node:path'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'
import { UserError } from '../processes/user-error.ts'

export interface LocalEnvironment {
  /** The first gateway's port; 0 for any free ports. */
  port: number
  /** The first gateway's ops port; 0 for any free ports. */
  opsPort: number
  /** The interface on which gateways listen. */
  host: string
  databaseUrl: string | undefined
  redisUrl: string | undefined
  stateDir: string
  /** The whole environment, for the gateways and workers. */
  inherited: NodeJS.ProcessEnv
}

/** Throws a UserError that names an invalid variable. An empty variable counts as unset. */
export function readEnvironment(env: NodeJS.ProcessEnv): LocalEnvironment {
  return {
    port: port(env, 'PORT', 3000),
    opsPort: port(env, 'OPS_PORT', 9464),
    host: env.HOST || '127.0.0.1',
    databaseUrl: env.DATABASE_URL || undefined,
    redisUrl: env.REDIS_URL || undefined,
    stateDir: env.SPILLWAY_DIR ? resolve(repositoryDir, env.SPILLWAY_DIR) : defaultStateDir,
    inherited: env,
  }
}

function port(env: NodeJS.ProcessEnv, name: string, byDefault: number): number {
  const text = env[name]
  if (!text) return byDefault
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new UserError(`${name} must be a port from 0 to 65535, not "${text}".`)
}
