// Processor time of the machine, as the kernel counts it.
import { setTimeout as sleep } from 'node:timers/promises'
import { readProc } from '@spillway/infra/processes/process-table'

/** The unit of /proc/stat: USER_HZ, 100 on every Linux that Node runs on. */
const MS_PER_TICK = 10

/** The time of all processors since boot; the hypervisor took `stolen` for other machines. */
function machineTime() {
  const line = readProc('stat')?.split('\n')[0]
  if (line === undefined) return undefined
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, stolen = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map((ticks) => Number(ticks) * MS_PER_TICK)
  return { busyMs: user + nice + system + irq + softirq, stolenMs: stolen, idleMs: idle + iowait }
}

/** Per cent of processor time that others used or stole meanwhile; undefined if unreadable. */
export async function backgroundLoad(lookForMs: number): Promise<number | undefined> {
  const before = machineTime()
  await sleep(lookForMs)
  const after = machineTime()
  if (before === undefined || after === undefined) return undefined
  const used = after.busyMs - before.busyMs + after.stolenMs - before.stolenMs
  const all = used + after.idleMs - before.idleMs
  return all === 0 ? 0 : (100 * used) / all
}
