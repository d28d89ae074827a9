// The command line of `pnpm chaos`.
import { parseCommandLine, whole } from '@spillway/local/processes/command-line'
import { UserError } from '@spillway/local/processes/user-error'
import { pickNamed } from '../src/named.ts'
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
  if (!values.soak && values.minutes !== undefined) throw new UserError('--minutes goes with --soak.')
  if (values.soak && names.length > 0) throw new UserError('--soak takes no names: it is a run of its own.')
  const minutes = whole('--minutes', values.minutes ?? '20', { most: 9_999 })
  return {
    scenarios: values.soak ? [soak(minutes)] : pickNamed('scenario', scenarios, names),
    list: values.list === true,
    help: values.help === true,
  }
}
