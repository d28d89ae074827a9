// `pnpm chaos`: runs the scenarios that were asked for, one after the other, and ends with the table of what they found.
import { report, UserError } from '@spillway/local/processes/user-error'
import { createProgress } from '../src/progress.ts'
import { type ChaosOptions, help, parseOptions } from './options.ts'
import { Findings, type Scenario } from './scenario.ts'
import { openStage, type Stage } from './stage/stage.ts'
import { type Row, table } from './table.ts'

async function runOne(scenario: Scenario, stage: Stage): Promise<Findings> {
  try {
    return await scenario.run(stage)
  } catch (error) {
    const findings = new Findings()
    findings.broken.push(error instanceof Error ? error.message : String(error))
    return findings
  }
}

async function chaos({ scenarios }: ChaosOptions): Promise<Row[]> {
  console.log('Building, and starting PostgreSQL ...')
  const stage = await openStage(console.log)
  const interruption = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      interruption.abort()
      // Ends what the scenario stands on, and so the scenario.
      void stage.close()
    })
  }
  const progress = createProgress(
    scenarios.reduce((sum, { estimatedS }) => sum + estimatedS, 0),
    process.stdout,
  )
  const rows: Row[] = []
  try {
    for (const scenario of scenarios) {
      progress.begin(scenario.name, scenario.estimatedS)
      const findings = await runOne(scenario, stage)
      if (interruption.signal.aborted) throw new UserError('Stopped before the end.')
      progress.end(findings.broken.length === 0 ? undefined : findings.broken.join(' '))
      rows.push({ name: scenario.name, findings })
    }
  } finally {
    progress.close()
    if (rows.length > 0) console.log(table(rows))
    await stage.close()
  }
  return rows
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2))
  if (options.help) return console.log(help)
  if (options.list) {
    return console.log(options.scenarios.map(({ name, promise }) => `${name.padEnd(22)}${promise}`).join('\n'))
  }
  const rows = await chaos(options)
  if (rows.some(({ findings }) => findings.broken.length > 0)) process.exitCode = 1
}

await main().catch((error) => {
  report(error)
  process.exitCode = 1
})
