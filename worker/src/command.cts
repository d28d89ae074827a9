#!/usr/bin/env node
/**
 * The command `spillway` of the package @spillway/client: a worker for applications, and keys. It
 * is CommonJS for the reason that main.cts gives. The package contains it, bundled into one file.
 */
const { randomBytes }: typeof import('node:crypto') = require('node:crypto')
const { createServer }: typeof import('node:net') = require('node:net')

const HELP = `spillway worker [--show-password]
                  hashes for the applications that have the same REDIS_URL and SPILLWAY_SEAL_KEYS; on a terminal
                  without SPILLWAY_SEAL_KEYS it makes them, and prints what the applications need
spillway keys     prints new SPILLWAY_SEAL_KEYS
`

/** The defaults of the worker's settings. */
const QUEUE_PREFIX = '{spillway}'
const OPS_PORT = 9465

const [command, ...others] = process.argv.slice(2)
const showsPassword = others[0] === '--show-password'
if (command === 'worker' && others.length === (showsPassword ? 1 : 0)) void work()
else if (command === 'keys' && others.length === 0) process.stdout.write(`SPILLWAY_SEAL_KEYS=${newSealKey()}\n`)
else if (command === undefined || command === '--help') process.stdout.write(HELP)
else {
  process.stderr.write(HELP)
  process.exitCode = 1
}

function newSealKey(): string {
  return `seal-1:${randomBytes(32).toString('base64')}`
}

async function work(): Promise<void> {
  // A key is printed only on a terminal: another reader of the output may store it.
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
    process.stdout.write(newVariables(process.env))
  }
  if (hasKeys()) {
    process.env.OPS_PORT ||= String(await freeOpsPort())
    require('./main.cjs')
  } else {
    process.stderr.write('SPILLWAY_SEAL_KEYS is not set: "npx --no-install spillway keys" prints new ones\n')
    process.exitCode = 1
  }
}

/** Lines for a .env file, or for a shell with `export` before each line. */
function newVariables(env: NodeJS.ProcessEnv): string {
  const { REDIS_URL_FILE: file, SPILLWAY_SEAL_KEYS } = env
  const [name, url] = file ? ['REDIS_URL_FILE', file] : ['REDIS_URL', env.REDIS_URL || 'redis://127.0.0.1:6379']
  const prefix = env.QUEUE_PREFIX || QUEUE_PREFIX
  // The URL may contain a password: before the host, or for Sentinels among the parameters.
  const isHidden = !file && /[@?]/.test(url) && !showsPassword
  return [
    'New keys. Put these lines into the .env file of the application, and of this worker for its next start:',
    '',
    ...(isHidden ? [] : [`${name}=${/^[\w@%+=:,./-]+$/.test(url) ? url : `'${url.replaceAll("'", '%27')}'`}`]),
    ...(prefix === QUEUE_PREFIX ? [] : [`SPILLWAY_QUEUE_PREFIX=${prefix}`, `QUEUE_PREFIX=${prefix}`]),
    `SPILLWAY_SEAL_KEYS=${SPILLWAY_SEAL_KEYS}`,
    '',
    ...(isHidden ? ['REDIS_URL is as in this terminal: --show-password prints it.', ''] : []),
    '',
  ].join('\n')
}

/** The default port, or a free one if another worker, for instance of `pnpm start`, has it. */
function freeOpsPort(): Promise<number> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(0))
    server.listen(OPS_PORT, '127.0.0.1', () => server.close(() => resolve(OPS_PORT)))
  })
}

/** Whether workers took jobs within the last minute. The worker reports invalid settings. */
async function hasWorkers(): Promise<boolean> {
  // This precedes the first use of the pool, as main.cts explains.
  const { sizeThreadPool }: typeof import('./consumer/cpu-limit.js') = require('./consumer/cpu-limit.js')
  sizeThreadPool()
  const { hasWorkers: haveWorkers } = await import('@spillway/queue/capacity')
  const { readSecret } = await import('@spillway/common/secrets')
  const { QUEUE_PREFIX: prefix = QUEUE_PREFIX } = process.env
  try {
    return await haveWorkers(readSecret(process.env, 'REDIS_URL') ?? 'redis://127.0.0.1:6379', prefix)
  } catch {
    return false
  }
}
