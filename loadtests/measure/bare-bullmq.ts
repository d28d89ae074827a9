// Jobs that do nothing, by BullMQ with nothing around it: as many callers that wait for theirs, and slots, as the pipeline has.
import { randomBytes } from 'node:crypto'
import { run } from '@spillway/local/processes/run'
import { startProcess } from '@spillway/local/rig'
import { deleteKeys } from '@spillway/local/rig/namespace'
import { compiled } from '../contenders/program.ts'

export interface BareBullmq {
  redisUrl: string
  callers: number
  slots: number
  forMs: number
}

/** Jobs a second, of one process that adds them and one that does them, on all cores. */
export async function bareBullmq({ redisUrl, callers, slots, forMs }: BareBullmq): Promise<number> {
  const prefix = `{bare-${randomBytes(6).toString('hex')}}`
  const program = compiled('measure/bare-bullmq-program')
  const worker = startProcess({ entry: program, args: ['worker', redisUrl, prefix, String(slots)] })
  try {
    const args = [program, 'producer', redisUrl, prefix, String(callers), String(forMs)]
    return Number(await run(process.execPath, args))
  } finally {
    await worker.close()
    await deleteKeys(redisUrl, prefix)
  }
}
