// The command line of `pnpm load`.
import { parseCommandLine, pickNamed, positive, UserError, whole } from '@spillway/infra/processes/command-line'
import { SEED_PASSWORD, SEED_USERS } from '@spillway/prisma/seed'
import { contenders } from '../contenders/contenders.ts'
import { scenarios } from './run.ts'
import { DURATION_MAX_S, RATE_MAX } from './target-spike.ts'

/** As the spike of the load tests that start a system of their own. */
const TARGET_DURATION_S = 10

export const help = `pnpm load [scenario ...] [--contender name[,name]] [--duration s] [--users n] [--rate n]
          [--repeat n] [--json file] [--from file]
pnpm load spike --target url [--rate n] [--duration s] [--users n] [--password p] [--beyond-loopback]
pnpm load storm --target url ...

Runs load tests and writes a JSON file and, beside it, a report: one HTML page. Without a scenario: a short set of all, in about ten
minutes. With --target: a spike of logins on a gateway that runs already, with the accounts of "pnpm seed".
The storm is on any other application that runs already: "pnpm load storm --help" describes it.

  --contender a,b   only these architectures
  --duration s      seconds under load, for each measurement (ramp: for each step; spike: of the spike)
  --users n         how many users there are, where the scenario has a number of them [100 or 5000]
  --rate n          requests per second (ramp: of the first step; spike: of the spike); the others run as fast as they are answered
  --repeat n        measures everything n times, in turn; the report shows medians [1]
  --json file       where results go; the report goes beside it as .html [.spillway/load/<time>.json]
  --from file       runs nothing; reads these results, and writes their report
  --help            prints this

With --target
  --target url      the gateway; "pnpm start" has it at http://127.0.0.1:3000
  --rate n          people a second, at most ${RATE_MAX} [five times what it is found to do]
  --duration s      seconds in which they come, at most ${DURATION_MAX_S} [${TARGET_DURATION_S}]; those with tickets are waited for
  --users n         how many accounts there are [${SEED_USERS}]
  --password p      their password ["${SEED_PASSWORD}"]
  --beyond-loopback lets the target be another machine than this one; only where you may do that

Scenarios
${scenarios.map(({ name, title }) => `  ${name.padEnd(20)}${title}`).join('\n')}

Contenders
${contenders.map(({ name, title }) => `  ${name.padEnd(20)}${title}`).join('\n')}
`

export type LoadOptions = ReturnType<typeof parseOptions>

const options = {
  contender: { type: 'string' },
  duration: { type: 'string' },
  users: { type: 'string' },
  rate: { type: 'string' },
  repeat: { type: 'string' },
  json: { type: 'string' },
  from: { type: 'string' },
  target: { type: 'string' },
  password: { type: 'string' },
  'beyond-loopback': { type: 'boolean' },
} as const

export function parseOptions(args: string[]) {
  const { values, positionals } = parse(args)
  const named = values.contender?.split(',').map((name) => name.trim())
  return {
    scenarios: pickNamed('scenario', scenarios, positionals),
    contenders: pickNamed('contender', contenders, named ?? []),
    /** Where neither scenarios nor contenders were named. */
    short: named === undefined && positionals.length === 0,
    durationS: values.duration === undefined ? undefined : positive('--duration', values.duration),
    users: values.users === undefined ? undefined : whole('--users', values.users),
    rate: values.rate === undefined ? undefined : positive('--rate', values.rate),
    repeat: whole('--repeat', values.repeat ?? '1'),
    json: values.json,
    from: values.from,
    target: targetOf(values, positionals),
    help: values.help === true,
  }
}

function parse(args: string[]) {
  return parseCommandLine('pnpm load', args, options, { allowPositionals: true })
}

/** Throws a UserError for options that do not go with a target, or need one. */
function targetOf(values: ReturnType<typeof parse>['values'], positionals: readonly string[]) {
  const { target: url, password, 'beyond-loopback': beyondLoopback } = values
  const { contender, repeat, json, from } = values
  if (url === undefined) {
    if (password === undefined && beyondLoopback === undefined) return undefined
    throw new UserError('--password and --beyond-loopback need a --target: see "pnpm load --help".')
  }
  const others = [contender, repeat, json, from].some((value) => value !== undefined)
  if (others || positionals.length !== 1 || positionals[0] !== 'spike') {
    throw new UserError(
      '--target is for "pnpm load spike" alone, without contenders and results: see "pnpm load --help".',
    )
  }
  return {
    url,
    beyondLoopback: beyondLoopback === true,
    users: whole('--users', values.users ?? String(SEED_USERS)),
    password: password ?? SEED_PASSWORD,
    durationS: atMost('--duration', values.duration ?? String(TARGET_DURATION_S), DURATION_MAX_S),
    rate: values.rate === undefined ? undefined : atMost('--rate', values.rate, RATE_MAX),
  }
}

function atMost(option: string, text: string, most: number): number {
  const value = positive(option, text)
  if (value <= most) return value
  throw new UserError(`${option} takes at most ${most} with a --target, not "${text}".`)
}
