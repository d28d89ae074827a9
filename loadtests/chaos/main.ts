// `pnpm chaos`: runs scenarios, side by side where they measure no rate, and prints their findings.
import { runCommand, runWithKeeper } from '@spillway/infra/processes/command'
import { parseCommandLine, pickNamed, UserError, whole } from '@spillway/infra/processes/command-line'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { buildEngine } from '@spillway/infra/start/build'
import { Findings } from './findings.ts'
import { commitToRecord, keepFindings, type Row, table } from './record.ts'
import type { Scenario } from './scenario.ts'
import { soak } from './scenarios/soak.ts'
import { scenarios as all } from './scenarios.ts'
import { openStage, type Stage } from './stage/stage.ts'

const help = `pnpm chaos [name ...] [--list] [--record] [--soak [--minutes N]]

Breaks what can break, under load and with real processes, and checks what is promised. Without a name: everything.

  name          only this scenario, or all whose names begin like this
  --soak        instead: a long run at 80 % of capacity with a worker killed each minute
  --minutes N   how long that is [20]
  --record      keeps the findings in measured.json and in the page of promises, loadtests/chaos/README.md
  --list        prints the scenarios and what each one promises
  --help        prints this
`

/** Lanes of scenarios, each with its own stage. With four, requests timed out on two processors. */
const LANES = 3

const optionTypes = {
  list: { type: 'boolean' },
  record: { type: 'boolean' },
  soak: { type: 'boolean' },
  minutes: { type: 'string' },
} as const

function parseOptions(args: string[]) {
  const { values, positionals: names } = parseCommandLine('pnpm chaos', args, optionTypes, { allowPositionals: true })
  if (!values.soak && values.minutes !== undefined) throw new UserError('--minutes goes with --soak.')
  if (values.soak && names.length > 0) throw new UserError('--soak takes no names: it is a run of its own.')
  const minutes = whole('--minutes', values.minutes ?? '20', { most: 9_999 })
  return { ...values, scenarios: values.soak ? [soak(minutes)] : pickNamed('scenario', all, names) }
}

async function runOne(scenario: Scenario, stage: Stage): Promise<Findings> {
  try {
    return await scenario.run(stage)
  } catch (error) {
    const findings = new Findings()
    findings.broken.push(error instanceof Error ? error.message : String(error))
    return findings
  } finally {
    await Promise.all([...stage.endings].map((end) => end()))
    stage.endings.clear()
  }
}

/** Runs all until the keeper is closed. The exit code is 1 when a promise was broken. */
async function chaos(keeper: Keeper, scenarios: readonly Scenario[], record: boolean): Promise<void> {
  const commit = record ? commitToRecord() : ''
  // Scenarios with real hashes measure the native engine where cargo can build it.
  await buildEngine(keeper, console.log)
  console.log('Starting PostgreSQL ...')
  const stages = [await openStage(keeper, console.log)]
  const rows: Row[] = []
  const startMs = performance.now()
  const secondsAfter = (ms: number) => ((performance.now() - ms) / 1_000).toFixed(0)

  async function run(scenario: Scenario, stage: Stage): Promise<void> {
    const beganMs = performance.now()
    const findings = await runOne(scenario, stage)
    // What an interruption broke off says nothing.
    if (keeper.closing) return
    rows.push({ name: scenario.name, findings })
    const took = `after ${secondsAfter(startMs)} s  ${scenario.name} (${secondsAfter(beganMs)} s)`
    console.log(`${rows.length} of ${scenarios.length}, ${took}`)
    if (findings.broken.length > 0) console.log(`  ${findings.broken.join(' ')}`)
  }

  async function runAll(some: readonly Scenario[], lanes: number): Promise<void> {
    const families = new Map<string, Scenario[]>()
    for (const one of some) {
      const { family = one.name } = one
      families.set(family, [...(families.get(family) ?? []), one])
    }
    const waiting = [...families.values()]
    async function lane(_: unknown, n: number): Promise<void> {
      const stage = stages[n] ?? (await openStage(keeper, () => undefined))
      if (!stages.includes(stage)) stages.push(stage)
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
        for (const scenario of next) if (!keeper.closing) await run(scenario, stage)
    }
    await Promise.all(Array.from({ length: Math.min(lanes, waiting.length) }, lane))
  }

  try {
    const isAlone = ({ alone }: Scenario) => alone === true
    await runAll(scenarios.filter(isAlone), 1)
    await runAll(
      scenarios.filter((one) => !isAlone(one)),
      LANES,
    )
  } finally {
    const inOrder = scenarios.flatMap(({ name }) => rows.filter((row) => row.name === name))
    if (rows.length > 0) console.log(table(inOrder))
    await Promise.all(stages.map((stage) => stage.close()))
  }
  if (record) await keepFindings(rows, commit)
  if (rows.some(({ findings }) => findings.broken.length > 0)) process.exitCode = 1
}

await runCommand(async () => {
  const { scenarios, list, record = false, help: isAsked } = parseOptions(process.argv.slice(2))
  if (isAsked) return console.log(help)
  if (list) return console.log(scenarios.map(({ name, promise }) => `${name.padEnd(24)}${promise}`).join('\n'))
  await runWithKeeper((keeper) => chaos(keeper, scenarios, record))
})
// A scenario that threw may have left traffic behind, which would go on for ever.
process.exit()
