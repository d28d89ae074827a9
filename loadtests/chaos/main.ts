// `pnpm chaos`: runs scenarios one after the other, and prints what each found.
import { runCommand, runWithKeeper } from '@spillway/infra/processes/command'
import { parseCommandLine, pickNamed } from '@spillway/infra/processes/command-line'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { buildEngine } from '@spillway/infra/start/build'
import { openServers, type Scenario, Trial } from './harness.ts'
import { lineScenarios } from './scenarios/line.ts'
import { operatorReads } from './scenarios/operators.ts'
import { processScenarios } from './scenarios/processes.ts'
import { serverScenarios } from './scenarios/servers.ts'
import { answerTimes } from './scenarios/times.ts'

const scenarios: readonly Scenario[] = [
  ...processScenarios,
  ...serverScenarios,
  ...lineScenarios,
  answerTimes,
  operatorReads,
]

const help = `pnpm chaos [name ...] [--list]

Breaks what can break, under load and with real processes, and checks what is promised. Without a name: everything.

  name          only this scenario, or all whose names begin like this
  --list        prints the scenarios and what each one promises
  --help        prints this
`

/** Runs one, and prints its row. Resolves with whether its promise was kept. */
async function run({ name, promise, ...scenario }: Scenario, trial: Trial): Promise<boolean> {
  const startMs = performance.now()
  await scenario.try(trial).catch((error: unknown) => trial.broken.push(String(error)))
  await trial.end().catch((error: unknown) => trial.broken.push(String(error)))
  const { visits, broken, figures } = trial
  const isKept = broken.length === 0
  const count = (is: (visit: Trial['visits'][number]) => boolean) => visits.filter(is).length.toLocaleString('en')
  const counts = [
    `${count(() => true)} visits`,
    `${count(({ end }) => end === 'answered')} answered`,
    `${count(({ ticketed }) => ticketed)} by ticket`,
    `${count(({ end }) => end === 'refused')} refused`,
  ].join(', ')
  const took = `${((performance.now() - startMs) / 1_000).toFixed(0)} s`
  const found = [...(visits.length > 0 ? [counts] : []), ...figures].join('; ')
  console.log(`| ${isKept ? 'kept  ' : 'BROKEN'} | ${name.padEnd(18)} | ${took.padStart(5)} | ${found} |`)
  if (!isKept) console.log([`  Promised: ${promise}`, ...broken.map((each) => `  ${each}`)].join('\n'))
  return isKept
}

/** The exit code is 1 when a promise was broken. */
async function chaos(keeper: Keeper, chosen: readonly Scenario[]): Promise<void> {
  // Scenarios with real hashes measure the native engine where cargo can build it.
  await buildEngine(keeper, console.log)
  console.log('Starting PostgreSQL ...')
  const servers = await openServers(keeper, console.log)
  let kept = 0
  try {
    for (const scenario of chosen) if (!keeper.closing && (await run(scenario, new Trial(servers)))) kept++
  } finally {
    await servers.close()
  }
  console.log(`${kept} of ${chosen.length} promises were kept.`)
  if (kept < chosen.length) process.exitCode = 1
}

await runCommand(async () => {
  const options = { list: { type: 'boolean' } } as const
  const { values, positionals } = parseCommandLine('pnpm chaos', process.argv.slice(2), options, {
    allowPositionals: true,
  })
  if (values.help) return console.log(help)
  const chosen = pickNamed('scenario', scenarios, positionals)
  if (values.list) return console.log(chosen.map(({ name, promise }) => `${name.padEnd(20)}${promise}`).join('\n'))
  await runWithKeeper((keeper) => chaos(keeper, chosen))
})
// A scenario that threw may have left traffic behind, which would go on for ever.
process.exit()
