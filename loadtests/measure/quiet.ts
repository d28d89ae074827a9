// How much of the machine others were using, measured while nothing of ours runs: the doubt to put on the figures after.
import { setTimeout as sleep } from 'node:timers/promises'
import { machineTime } from '@spillway/local/processes/processor-time'

const LOOK_FOR_MS = 300

/** Per cent of all processor time that was busy or stolen while this waited; undefined where it cannot be read. */
export async function backgroundLoad(): Promise<number | undefined> {
  const before = machineTime()
  await sleep(LOOK_FOR_MS)
  const after = machineTime()
  if (before === undefined || after === undefined) return undefined
  const used = after.busyMs - before.busyMs + after.stolenMs - before.stolenMs
  const all = used + after.idleMs - before.idleMs
  return all === 0 ? 0 : (100 * used) / all
}
