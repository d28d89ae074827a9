// The command line of a storm.
import { parseArgs } from 'node:util'
import { bound, countOf, defaultOf, PROBES_MAX } from './numbers.ts'
import { type HttpRequest, parseHeaders, parseRequestLine, withBody } from './request.ts'
import { readRequest } from './request-file.ts'
import type { StormOptions } from './storm.ts'
import { UsageError } from './usage-error.ts'

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

export interface StormCommand extends StormOptions {
  /** The files to write. */
  json: string | undefined
  report: string | undefined
}

/** @throws {@link UsageError}, which names what is wrong */
export async function parseOptions(args: readonly string[], command: string): Promise<StormCommand> {
  const values = parse(args, command)
  const { target, json, report } = values
  if (target === undefined) throw new UsageError(`--target is missing: see "${command} --help".`)
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
    throw new UsageError(`${what}: see "${command} --help".`)
  }
}

async function loginOf({ login, body, header = [], request }: Values, command: string): Promise<HttpRequest> {
  if (request === undefined && login !== undefined) {
    const line = parseRequestLine('--login', login, 'POST')
    return withBody({ ...line, headers: parseHeaders('--header', header) }, body)
  }
  if (request === undefined) throw new UsageError(`--login or --request is missing: see "${command} --help".`)
  if (login === undefined && body === undefined && header.length === 0) return await readRequest(request)
  throw new UsageError('--request takes the place of --login, --body and --header.')
}

function probesOf({ probe = [], 'probe-header': header = [] }: Values): HttpRequest[] {
  if (probe.length > PROBES_MAX) throw new UsageError(`--probe is taken at most ${PROBES_MAX} times.`)
  const headers = parseHeaders('--probe-header', header)
  return probe.map((line) => ({ ...parseRequestLine('--probe', line, 'GET'), headers }))
}

function statusesOf(expect: string | undefined): number[] | undefined {
  return expect?.split(',').map((status) => countOf('--expect', status.trim(), { least: 100, most: 599 }))
}
