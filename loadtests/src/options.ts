// The command line of `pnpm load`.
import { parseCommandLine, positive, whole } from '@spillway/local/processes/command-line'
import { contenders } from '../contenders/contenders.ts'
import { scenarios } from '../scenarios/scenarios.ts'
import { pickNamed } from './named.ts'
import { targetHelp, targetOf } from './target-options.ts'

export const help = `pnpm load [scenario ...] [--contender name[,name]] [--duration s] [--users n] [--rate n]
          [--repeat n] [--json file] [--compare old.json] [--from file]
pnpm load spike --target url [--rate n] [--duration s] [--users n] [--password p] [--beyond-loopback]

Runs load tests and writes a JSON file and an HTML report beside it. Without a scenario: a short set of all, in
about ten minutes. With --target: a spike of logins on a gateway that runs already, with the accounts of "pnpm seed".

  --contender a,b   only these architectures
  --duration s      seconds under load, for each measurement (ramp: for each step; spike: of the spike)
  --users n         how many users there are, where the scenario has a number of them [100 or 5000]
  --rate n          requests per second (ramp: of the first step; spike: of the spike); the others run as fast as they are answered
  --repeat n        measures everything n times, in turn; the report shows medians and how far apart they are [1]
  --json file       where results go; the report goes beside it as .html [.spillway/load/<time>.json]
  --compare file    prints what changed since the results in this file
  --from file       runs nothing; reads these results, writes their report, and compares them if asked to
  --help            prints this

${targetHelp}

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
  compare: { type: 'string' },
  from: { type: 'string' },
  target: { type: 'string' },
  password: { type: 'string' },
  'beyond-loopback': { type: 'boolean' },
} as const

/** Throws a UserError that names what is wrong. */
export function parseOptions(args: string[]) {
  const { values, positionals } = parseCommandLine('pnpm load', args, options, { allowPositionals: true })
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
    compare: values.compare,
    from: values.from,
    target: targetOf(values, positionals),
    help: values.help === true,
  }
}
