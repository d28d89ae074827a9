// The command `pnpm --filter @spillway/sizing run measure`: measures what `pnpm size` reckons with, and checks its model.
// Takes five minutes. Rates and waits need a machine with nothing else to do; processor time is not disturbed as easily.
import { writeFile } from 'node:fs/promises'
import { cpus, release } from 'node:os'
import { runWithKeeper } from '@spillway/local/processes/command'
import { type Figures, figuresFile } from '../figures.ts'
import { checkSpike, checkWaits, SLOTS, standIns } from './checks.ts'
import { measureCost, measureJobBytes, measureMemory, measureTurnaround } from './costs.ts'
import { DEFAULT_POLICY, openHashMeter } from './hash.ts'
import { type MeasuredSystem, startSystem } from './logins.ts'

await runWithKeeper(async (keeper) => {
  const system = await startSystem(keeper, SLOTS)
  try {
    const figures = await measure(system)
    const round = (_key: string, value: unknown) => (typeof value === 'number' ? Number(value.toFixed(3)) : value)
    const rounded = JSON.stringify(figures, round, 2)
    await writeFile(figuresFile, `${rounded}\n`)
    console.log(rounded)
  } finally {
    await system.close()
  }
})

async function measure(system: MeasuredSystem): Promise<Figures> {
  const memoryMib = measureMemory(system)
  const emails = await standIns(system)
  const turnaroundMs = await measureTurnaround(system, SLOTS, emails)
  const checks = await checkWaits(system, emails, turnaroundMs, console.log)
  const spike = await checkSpike(system, emails, turnaroundMs)
  const costMs = await measureCost(system)
  const hashMs = await measureHash()
  const jobBytes = await measureJobBytes(system)
  const [cpu] = cpus()
  return {
    machine: `${cpus().length} × ${cpu?.model.trim()}, Linux ${release()}, Node ${process.version}`,
    measuredAt: new Date().toISOString().slice(0, 10),
    costMs,
    hashMs,
    turnaroundMs,
    jobBytes,
    memoryMib,
    checks,
    spike,
  }
}

/** Processor time of one hash at the default cost, with full batches. */
async function measureHash(): Promise<number> {
  const meter = await openHashMeter({ native: true })
  try {
    return (await meter.measure(DEFAULT_POLICY)).fullMs
  } finally {
    meter.close()
  }
}
