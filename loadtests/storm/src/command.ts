// The command of a storm: reads the options, storms, says what was measured and writes it down.
// Mistakes quote names of options, methods and paths, and nothing else: bodies, headers and words
// that stand alone may hold a password.
import { constants } from 'node:fs'
import { access, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { report as print, UserError } from '@spillway/infra/processes/command-line'
import { missed } from './advice.ts'
import { renderReport } from './report.ts'
import { BODY_MAX_BYTES, type HttpRequest, parseHeaders, parseRequestLine, readRequest, withBody } from './request.ts'
import { RETRY_MS, storm, TOLD_MAX_MS } from './storm.ts'
import { inWords } from './terminal.ts'

const HELD = 0
const MISSED = 1
const NOT_STORMED = 2
const INTERRUPTED = 130

/**
 * Never rejects. A signal ends the storm early with what was measured; a second one ends the
 * process.
 *
 * @param name the command as it was typed: `spillway-storm`
 * @returns the exit code: 0 when all probes stayed within the limit, 1 when one missed it, 2 when
 * nothing was stormed, 130 after a signal
 */
export async function stormCommand(args: readonly string[], name: string): Promise<number> {
  const interruption = new AbortController()
  const interrupt = () => interruption.abort()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt)
  try {
    return await run(args, name, interruption.signal)
  } catch (error) {
    if (interruption.signal.aborted) {
      console.error('Interrupted: nothing was stormed.')
      return INTERRUPTED
    }
    print(error)
    return NOT_STORMED
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt)
  }
}

async function run(args: readonly string[], name: string, signal: AbortSignal): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(help(name))
    return HELD
  }
  const { json, report, ...options } = await parseOptions(args, name)
  for (const file of [json, report]) if (file !== undefined) await refuseUnwritable(file)
  const { isTTY } = process.stdout
  const progress = (line: string) => isTTY && process.stdout.write(`\r\u001b[2K${line}`)
  const result = await storm(options, { signal, progress }).finally(() => progress(''))
  console.log(inWords(result))
  if (json !== undefined) await writeFile(json, `${JSON.stringify(result, undefined, 1)}\n`)
  if (report !== undefined) await writeFile(report, renderReport(result))
  if (result.interrupted) return INTERRUPTED
  return missed(result).length > 0 ? MISSED : HELD
}

/** Told before minutes of work, not after. */
async function refuseUnwritable(file: string): Promise<void> {
  await access(dirname(file), constants.W_OK).catch((cause) => {
    throw new UserError(`${file} cannot be written: its folder is missing, or not yours.`, { cause })
  })
}

// The options.

/** Whole numbers, with their default and their most. */
const numbers = {
  users: [100, 5_000, 'users who log in at the same time, each on a connection of their own'],
  duration: [10, 60, 'seconds in which logins begin; those that are open then are waited for'],
  rate: [40, 100, 'times a second that each probe is asked'],
  p99: [100, 30_000, 'milliseconds that a probe may take at p99 during the storm'],
  timeout: [10, 30, 'seconds until a request is given up'],
  calm: [5, 60, 'seconds that probes are measured before the storm'],
  after: [10, 60, 'seconds to wait, at the most, until probes are as quick as before'],
} as const

const PROBES_MAX = 8

const text = { type: 'string' } as const
const texts = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const
const options = {
  ...{ target: text, 'beyond-loopback': flag, login: text, body: text, header: texts, request: text, expect: text },
  ...{ probe: texts, 'probe-header': texts, json: text, report: text, help: { ...flag, short: 'h' } },
  ...{ users: text, duration: text, rate: text, p99: text, timeout: text, calm: text, after: text },
} as const

type Values = ReturnType<typeof parse>

/** @throws {@link UserError}, which names what is wrong */
export async function parseOptions(args: readonly string[], command: string) {
  const values = parse(args, command)
  const { target, json, report, expect } = values
  if (target === undefined) throw new UserError(`--target is missing: see "${command} --help".`)
  const number = (name: keyof typeof numbers) => {
    const [initial, most] = numbers[name]
    return countOf(`--${name}`, values[name] ?? String(initial), 1, most)
  }
  return {
    ...{ target, json, report },
    beyondLoopback: values['beyond-loopback'] === true,
    login: await loginOf(values, command),
    expect: expect?.split(',').map((status) => countOf('--expect', status.trim(), 100, 599)),
    probes: probesOf(values),
    ...{ users: number('users'), durationS: number('duration'), probesPerSecond: number('rate') },
    ...{ p99Ms: number('p99'), timeoutS: number('timeout'), calmS: number('calm'), afterS: number('after') },
  }
}

function countOf(option: string, given: string, least: number, most: number): number {
  const value = Number(given)
  if (/^\d{1,9}$/.test(given) && value >= least && value <= most) return value
  throw new UserError(`${option} takes a whole number from ${least} to ${most}.`)
}

function parse(args: readonly string[], command: string) {
  try {
    // pnpm passes on the "--" of `pnpm load -- storm`.
    return parseArgs({ args: args.filter((argument) => argument !== '--'), options }).values
  } catch (cause) {
    // Node's message quotes arguments that stand alone, such as words of an unquoted body.
    const option = /'(--?[a-z0-9-]+)\b/.exec(cause instanceof Error ? cause.message : '')?.[1]
    const what =
      option === undefined ? 'Something stands alone, without an option' : `${option} is unknown, or lacks its value`
    throw new UserError(`${what}: see "${command} --help".`)
  }
}

async function loginOf({ login, body, header = [], request }: Values, command: string): Promise<HttpRequest> {
  if (request === undefined && login !== undefined) {
    const line = parseRequestLine('--login', login, 'POST')
    return withBody({ ...line, headers: parseHeaders('--header', header) }, body)
  }
  if (request === undefined) throw new UserError(`--login or --request is missing: see "${command} --help".`)
  if (login === undefined && body === undefined && header.length === 0) return await readRequest(request)
  throw new UserError('--request takes the place of --login, --body and --header.')
}

function probesOf({ probe = [], 'probe-header': header = [] }: Values): HttpRequest[] {
  if (probe.length > PROBES_MAX) throw new UserError(`--probe is taken at most ${PROBES_MAX} times.`)
  const headers = parseHeaders('--probe-header', header)
  return probe.map((line) => ({ ...parseRequestLine('--probe', line, 'GET'), headers }))
}

const numberHelp = Object.entries(numbers)
  .map(([name, [initial, most, says]]) => `  ${`--${name} n`.padEnd(23)}${says}, at most ${most} [${initial}]`)
  .join('\n')

export const help = (
  command: string,
): string => `${command} --target url --login 'POST /login' [--body text] [--probe 'GET /path' ...]
${command} --target url --request file.json [--probe 'GET /path' ...]

Lets users log in again and again to an application that runs already, and meanwhile asks other endpoints, the probes,
at a constant rate. Says what the logins did to the probes, and what to do.

  --target url           the application, such as http://127.0.0.1:3000, by http or https
  --beyond-loopback      lets the target be another machine than this one; only where you may do that.
                         Its certificate is verified then
  --login 'POST /login'  method and path of a login
  --body text            its body, at most ${BODY_MAX_BYTES / 1024} KiB; {n} is the number of the user, from 1, here as in path
                         and headers
  --header 'name: value' a header of it; repeatable [content-type: application/json for a body that begins with { or [,
                         otherwise application/x-www-form-urlencoded]
  --request file         the login as JSON instead: {"method": "POST", "path": "/login", "headers": {}, "body": {}}.
                         Keeps a password out of the list of processes and the history of your shell
  --expect 200,302       the statuses of a login that succeeded; a form may redirect wrong passwords, too
                         [any from 200 to 399 but 202]
  --probe 'GET /path'    another endpoint to ask, which answers with a status from 200 to 399; repeatable, at most
                         ${PROBES_MAX} times [none]
  --probe-header 'n: v'  a header of all probes, such as a session's cookie; repeatable
${numberHelp}
  --json file            writes all figures
  --report file          writes a report, one HTML file
  --help                 prints this

A login is lost when there is no answer within the time limit, or the connection breaks. It is refused when the answer
is 202, 429 or 503 with Retry-After: the user then comes back as told, after at most ${TOLD_MAX_MS / 1_000} s. A user whose login was lost,
or had another answer, waits ${RETRY_MS / 1_000} s. Redirects are answers and are not followed. A probe without a good answer counts
as if it had taken the whole time limit. The logins begin when all probes before them are answered.

Before all that the first user and the last must be able to log in, and each probe must work; otherwise nothing is
stormed. Of what is sent only methods and paths, without their queries, are written or printed: no password.

Exit code: 0 when all probes stayed within --p99 during the storm, 1 when one did not, 2 when nothing was stormed, 130
after Ctrl-C, which ends the storm early and still says what was measured.
`
