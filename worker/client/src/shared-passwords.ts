/** The one instance of the drop-in replacements, opened by the environment on first use. */
import { readSecret } from '@spillway/common/secrets'
import { CONCURRENCY_MAX } from '@spillway/queue/wire/policy'
import { endUnlessApplication } from './application/beside/one-file.js'
import type { ExactPasswords } from './application/create-passwords.js'
import type { PasswordsOptions } from './application/types.js'

endUnlessApplication()

let opening: Promise<ExactPasswords> | undefined

/** Loads the code at the first call: replacements are imported as quickly as the packages. */
export function sharedPasswords(): Promise<ExactPasswords> {
  opening ??= open()
  return opening
}

/** Makes the replacements use these passwords: for tests. */
export function sharePasswords(passwords: ExactPasswords): void {
  opening = Promise.resolve(passwords)
}

/** Rejects with an error that names all variables that are invalid. */
async function open(): Promise<ExactPasswords> {
  try {
    const { openPasswords } = await import('./application/create-passwords.js')
    return openPasswords(readEnvironment(process.env))
  } catch (error) {
    opening = undefined
    throw error
  }
}

/** Rejects waiting calls with `closed`. A later call opens it again. */
export async function close(): Promise<void> {
  const closing = await opening
  opening = undefined
  await closing?.close()
}

/**
 * Reads the settings, whose names begin with SPILLWAY_. With SPILLWAY_SEAL_KEYS the queue hashes,
 * and REDIS_URL is read if SPILLWAY_REDIS_URL is not set. All three may come from files
 * (`NAME_FILE`). Throws one error that names every invalid variable, without values.
 */
export function readEnvironment(env: NodeJS.ProcessEnv): PasswordsOptions {
  const problems: string[] = []
  const whole = (name: string, max: number, min = 1): number | undefined => {
    const text = env[name]
    if (!text) return undefined
    const value = Number(text)
    if (!Number.isInteger(value) || value < min || value > max)
      problems.push(`${name} must be a whole number from ${min} to ${max}`)
    return value
  }
  const { SPILLWAY_IN_PROCESS: inProcess } = env
  if (inProcess && !/^(true|false)$/.test(inProcess)) problems.push('SPILLWAY_IN_PROCESS must be true or false')
  const options: PasswordsOptions = {
    inProcess: inProcess ? inProcess === 'true' : undefined,
    waitMs: env.SPILLWAY_WAIT_MS === 'Infinity' ? Number.POSITIVE_INFINITY : whole('SPILLWAY_WAIT_MS', 600_000),
    concurrency: whole('SPILLWAY_CONCURRENCY', CONCURRENCY_MAX),
    ...queueOf(env, problems),
  }
  if (problems.length > 0) throw new Error(problems.join('; '))
  return options
}

function queueOf(env: NodeJS.ProcessEnv, problems: string[]): PasswordsOptions {
  const secret = (name: string): string | undefined => {
    try {
      return readSecret(env, name)
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error))
      return undefined
    }
  }
  const sealKeys = secret('SPILLWAY_SEAL_KEYS')
  if (sealKeys === undefined) return {}
  const { SPILLWAY_QUEUE_PREFIX: queuePrefix } = env
  const redis = secret('SPILLWAY_REDIS_URL') ?? secret('REDIS_URL')
  if (!redis) problems.push('SPILLWAY_REDIS_URL must name the Redis of the workers, because SPILLWAY_SEAL_KEYS is set')
  if (queuePrefix && !/^\{[\w-]+\}$/.test(queuePrefix)) problems.push('SPILLWAY_QUEUE_PREFIX must be a name in braces')
  return { redis, sealKeys, queuePrefix: queuePrefix || undefined }
}
