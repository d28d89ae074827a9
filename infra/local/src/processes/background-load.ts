// How busy others keep the machine, before something is measured on it.
import { setTimeout as sleep } from 'node:timers/promises'
import { machineTime } from './processor-time.ts'

/** Per cent of all processor time that others used or stole while this waited; undefined where it cannot be read. */
export async function backgroundLoad(lookForMs: number): Promise<number | undefined> {
  const before = machineTime()
  await sleep(lookForMs)
  const after = machineTime()
  if (before === undefined || after === undefined) return undefined
  const used = after.busyMs - before.busyMs + after.stolenMs - before.stolenMs
  const all = used + after.idleMs - before.idleMs
  return all === 0 ? 0 : (100 * used) / all
}
