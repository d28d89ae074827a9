// The command line of `pnpm chaos`.
import { parseCommandLine } from '@spillway/local/processes/command-line'
import { UserError } from '@spillway/local/processes/user-error'
import type { Scenario } from './scenario.ts'
import { soak } from './scenarios/soak.ts'
import { scenarios } from './scenarios.ts'

export const help = `pnpm chaos [name ...] [--list] [--soak [--minutes N]]

Breaks what can break, under load and with real processes, and checks what is promised for it. Without a name: everything.

  name          only this scenario, or all whose names begin like this
  --soak        instead: a long run at 80 % of capacity with a worker killed each minute
  --minutes N   how long that is [20]
  --list        prints the scenarios and what each one promises
  --help        prints this
`

export interface ChaosOptions {
  scenarios: readonly Scenario[]
  list: boolean
  help: boolean
}

const options = { list: { type: 'boolean' }, soak: { type: 'boolean' }, minutes: { type: 'string' } } as const

/** @throws {@link UserError} */
export function parseOptions(args: string[]): ChaosOptions {
  const { values, positionals: names } = parseCommandLine('pnpm chaos', args, options, { allowPositionals: true })
  if (values.soak !== true && values.minutes !== undefined) throw new UserError('--minutes goes with --soak.')
  if (values.soak === true && names.length > 0) throw new UserError('--soak takes no names: it is a run of its own.')
  return {
    scenarios: values.soak === true ? [soak(minutesOf(values.minutes))] : named(names),
    list: values.list === true,
    help: values.help === true,
  }
}

const SOAK_MINUTES = 20

function minutesOf(text = String(SOAK_MINUTES)): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new UserError(`--minutes takes a whole number of minutes, not "${text}".`)
  return Number(text)
}

function named(names: readonly string[]): readonly Scenario[] {
  return names.length === 0 ? scenarios : names.flatMap(pick)
}

/** The scenario of this name, or those whose names begin with it. */
function pick(name: string): Scenario[] {
  const exact = scenarios.filter((scenario) => scenario.name === name)
  const found = exact.length > 0 ? exact : scenarios.filter((scenario) => scenario.name.startsWith(name))
  if (found.length === 0) throw new UserError(`There is no scenario "${name}": see "pnpm chaos --list".`)
  return found
}
