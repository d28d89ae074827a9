/** The settings of the drop-in replacements, by the names that workers and gateways have for them. */
import type { PasswordsOptions } from '../application/types.js'

/**
 * With SPILLWAY_SEAL_KEYS the queue of REDIS_URL and QUEUE_PREFIX. Without them REDIS_URL is not read: many applications have one of
 * their own. Throws one error that names every invalid variable, without values.
 */
export function readEnvironment(env: NodeJS.ProcessEnv): PasswordsOptions {
  const problems: string[] = []
  const whole = (name: string, max: number): number | undefined => {
    const text = env[name]
    if (!text) return undefined
    const value = Number(text)
    if (!Number.isInteger(value) || value < 1 || value > max)
      problems.push(`${name} must be a whole number from 1 to ${max}`)
    return value
  }
  const options: PasswordsOptions = {
    waitMs: whole('LOGIN_WAIT_MS', 600_000),
    concurrency: whole('WORKER_CONCURRENCY', 1_024),
    ...(env.SPILLWAY_SEAL_KEYS ? queueOf(env, problems) : {}),
  }
  if (problems.length > 0) throw new Error(problems.join('; '))
  return options
}

function queueOf({ REDIS_URL, SPILLWAY_SEAL_KEYS, QUEUE_PREFIX }: NodeJS.ProcessEnv, problems: string[]) {
  if (!REDIS_URL) problems.push('REDIS_URL must name the Redis of the workers, because SPILLWAY_SEAL_KEYS is set')
  if (QUEUE_PREFIX && !/^\{[\w-]+\}$/.test(QUEUE_PREFIX)) problems.push('QUEUE_PREFIX must be a name in braces')
  return { redis: REDIS_URL, sealKeys: SPILLWAY_SEAL_KEYS, queuePrefix: QUEUE_PREFIX || undefined }
}
