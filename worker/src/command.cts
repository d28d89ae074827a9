#!/usr/bin/env node
/**
 * The command `spillway` of the package @spillway/client: a worker for applications, and keys.
 * CommonJS for the reason that main.cts gives; the package holds it bundled into one file.
 */
const { randomBytes }: typeof import('node:crypto') = require('node:crypto')

const HELP = `spillway worker   hashes for the applications that have the same REDIS_URL and SPILLWAY_SEAL_KEYS
spillway keys     prints new SPILLWAY_SEAL_KEYS
`

const [command, ...others] = process.argv.slice(2)
if (command === 'worker' && others.length === 0) void work()
else if (command === 'keys' && others.length === 0) process.stdout.write(`SPILLWAY_SEAL_KEYS=${newSealKey()}\n`)
else if (command === undefined || command === '--help') process.stdout.write(HELP)
else {
  process.stderr.write(HELP)
  process.exitCode = 1
}

function newSealKey(): string {
  return `seal-1:${randomBytes(32).toString('base64')}`
}

/** The default of the worker's setting. */
const QUEUE_PREFIX = '{spillway}'

async function work(): Promise<void> {
  // A key is printed on a terminal alone: what else reads the output may keep it.
  const hasKeys = () => process.env.SPILLWAY_SEAL_KEYS || process.env.SPILLWAY_SEAL_KEYS_FILE
  if (!hasKeys() && process.stdout.isTTY) {
    if (await hasWorkers()) {
      process.stderr.write(
        'Workers of this queue have keys, and others would not fit: set SPILLWAY_SEAL_KEYS to theirs\n',
      )
      process.exitCode = 1
      return
    }
    process.env.SPILLWAY_SEAL_KEYS = newSealKey()
    const { REDIS_URL = 'redis://127.0.0.1:6379', SPILLWAY_SEAL_KEYS } = process.env
    // It may hold a password: before the host, or for Sentinels among the parameters.
    const url = /[@?]/.test(REDIS_URL) ? '<as in this terminal>' : REDIS_URL
    process.stdout.write('New keys. Give them to the application, and to this worker when it is started again:\n\n')
    process.stdout.write(`REDIS_URL=${url}\nSPILLWAY_SEAL_KEYS=${SPILLWAY_SEAL_KEYS}\n\n`)
  }
  if (hasKeys()) require('./main.cjs')
  else {
    process.stderr.write('SPILLWAY_SEAL_KEYS is not set: "npx --no-install spillway keys" prints new ones\n')
    process.exitCode = 1
  }
}

/** Whether workers took jobs within the last minute. The worker reports invalid settings. */
async function hasWorkers(): Promise<boolean> {
  // Before the pool is used, as main.cts says.
  const { sizeThreadPool }: typeof import('./consumer/cpu-limit.js') = require('./consumer/cpu-limit.js')
  sizeThreadPool()
  const { hasCanary } = await import('@spillway/queue/jobs/capacity')
  const { readSecret } = await import('@spillway/common/secrets')
  const { QUEUE_PREFIX: prefix = QUEUE_PREFIX } = process.env
  try {
    return await hasCanary(readSecret(process.env, 'REDIS_URL') ?? 'redis://127.0.0.1:6379', prefix)
  } catch {
    return false
  }
}
