// The command `pnpm --filter @spillway/sizing run measure`: measures what `pnpm size` reckons with, and checks its model.
// Takes five minutes. Rates and waits need a machine with nothing else to do; processor time is not disturbed as easily.
import { writeFile } from 'node:fs/promises'
import { cpus, release } from 'node:os'
import { openKeeper } from '@spillway/local/processes/keeper'
import { report } from '@spillway/local/processes/user-error'
import { type Figures, figuresFile } from '../figures.ts'
import { checkSpike, checkWaits, SLOTS, standIns } from './checks.ts'
import { measureCost, measureHash, measureJobBytes, measureMemory, measureTurnaround } from './costs.ts'
import { type MeasuredSystem, startSystem } from './system.ts'

const keeper = openKeeper()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void keeper.close())
let system: MeasuredSystem | undefined
try {
  system = await startSystem(keeper, SLOTS)
  const memoryMib = measureMemory(system)
  const emails = await standIns(system)
  const turnaroundMs = await measureTurnaround(system, SLOTS, emails)
  const checks = await checkWaits(system, emails, turnaroundMs, console.log)
  const spike = await checkSpike(system, emails, turnaroundMs)
  const costMs = await measureCost(system)
  const hashMs = await measureHash(system, costMs.worker)
  const jobBytes = await measureJobBytes(system)
  const [cpu] = cpus()
  const figures: Figures = {
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
  const rounded = JSON.stringify(
    figures,
    (_key, value) => (typeof value === 'number' ? Number(value.toFixed(3)) : value),
    2,
  )
  await writeFile(figuresFile, `${rounded}\n`)
  console.log(rounded)
} catch (error) {
  report(error)
  process.exitCode = 1
} finally {
  await system?.close()
  await keeper.close()
}
