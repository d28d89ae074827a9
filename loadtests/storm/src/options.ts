// The command line of a storm. Its mistakes may quote names of options, methods and paths, never a body, a header or what stands alone on the
// command line: those may hold a password.
import { parseArgs } from 'node:util'
import { UserError } from '@spillway/infra/processes/command-line'
import { BODY_MAX_BYTES, type HttpRequest, parseHeaders, parseRequestLine, readRequest, withBody } from './request.ts'
import { RETRY_MS, type StormOptions, TOLD_MAX_MS } from './storm.ts'

// The numbers of a storm's command line, with their defaults and bounds, for help and for reading them.

interface NumberOption {
  initial: number
  least?: number
  most: number
  says: string
}

const numbers = {
  users: { initial: 100, most: 5_000, says: 'users who log in at the same time, each on a connection of their own' },
  duration: { initial: 10, most: 60, says: 'seconds in which logins begin; those that are open then are waited for' },
  rate: { initial: 40, most: 100, says: 'times a second that each probe is asked' },
  p99: { initial: 100, most: 30_000, says: 'milliseconds that a probe may take at p99 during the storm' },
  timeout: { initial: 10, most: 30, says: 'seconds until a request is given up' },
  calm: { initial: 5, most: 60, says: 'seconds that probes are measured before the storm' },
  after: { initial: 10, most: 60, says: 'seconds to wait, at the most, until probes are as quick as before' },
} satisfies Record<string, NumberOption>

type Name = keyof typeof numbers

const PROBES_MAX = 8

/** A default, as it would be typed. */
const defaultOf = (name: Name): string => String(numbers[name].initial)

/** A line for each. */
const numberHelp: string = Object.entries(numbers)
  .map(([name, { initial, most, says }]) => `  ${`--${name} n`.padEnd(23)}${says}, at most ${most} [${initial}]`)
  .join('\n')

/** @throws {@link UserError} for what is no whole number within the bounds of this option */
export function bound(name: Name, text: string): number {
  return countOf(`--${name}`, text, numbers[name])
}

/** @throws {@link UserError} for what is no whole number within bounds */
function countOf(option: string, text: string, { least = 1, most }: Pick<NumberOption, 'least' | 'most'>): number {
  const value = Number(text)
  if (/^\d{1,9}$/.test(text) && value >= least && value <= most) return value
  throw new UserError(`${option} takes a whole number from ${least} to ${most}.`)
}

const options = {
  target: { type: 'string' },
  'beyond-loopback': { type: 'boolean' },
  login: { type: 'string' },
  body: { type: 'string' },
  header: { type: 'string', multiple: true },
  request: { type: 'string' },
  expect: { type: 'string' },
  probe: { type: 'string', multiple: true },
  'probe-header': { type: 'string', multiple: true },
  users: { type: 'string', default: defaultOf('users') },
  duration: { type: 'string', default: defaultOf('duration') },
  rate: { type: 'string', default: defaultOf('rate') },
  p99: { type: 'string', default: defaultOf('p99') },
  timeout: { type: 'string', default: defaultOf('timeout') },
  calm: { type: 'string', default: defaultOf('calm') },
  after: { type: 'string', default: defaultOf('after') },
  json: { type: 'string' },
  report: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

type Values = ReturnType<typeof parse>

export function asksForHelp(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h')
}

interface StormCommand extends StormOptions {
  /** The files to write. */
  json: string | undefined
  report: string | undefined
}

/** @throws {@link UserError}, which names what is wrong */
export async function parseOptions(args: readonly string[], command: string): Promise<StormCommand> {
  const values = parse(args, command)
  const { target, json, report } = values
  if (target === undefined) throw new UserError(`--target is missing: see "${command} --help".`)
  return {
    ...{ target, json, report },
    beyondLoopback: values['beyond-loopback'] === true,
    login: await loginOf(values, command),
    expect: statusesOf(values.expect),
    probes: probesOf(values),
    users: bound('users', values.users),
    durationS: bound('duration', values.duration),
    probesPerSecond: bound('rate', values.rate),
    p99Ms: bound('p99', values.p99),
    timeoutS: bound('timeout', values.timeout),
    calmS: bound('calm', values.calm),
    afterS: bound('after', values.after),
  }
}

function parse(args: readonly string[], command: string) {
  try {
    // pnpm passes on the "--" of `pnpm load -- storm`.
    return parseArgs({ args: args.filter((argument) => argument !== '--'), options }).values
  } catch (cause) {
    // What Node says quotes arguments that stand alone: words of a body without quotes, for instance.
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

function statusesOf(expect: string | undefined): number[] | undefined {
  return expect?.split(',').map((status) => countOf('--expect', status.trim(), { least: 100, most: 599 }))
}

// What --help prints.

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
