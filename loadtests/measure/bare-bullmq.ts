// Jobs that do nothing, by BullMQ with nothing around it: as many callers that wait for theirs, and slots, as the pipeline has.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { run } from '@spillway/local/processes/run'
import { deleteKeys } from '@spillway/local/testing/namespace'
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
  const worker = spawn(process.execPath, [program, 'worker', redisUrl, prefix, String(slots)], { stdio: 'ignore' })
  const workerClosed = once(worker, 'close')
  try {
    const args = [program, 'producer', redisUrl, prefix, String(callers), String(forMs)]
    return Number(await run(process.execPath, args))
  } finally {
    worker.kill('SIGKILL')
    await workerClosed
    await deleteKeys(redisUrl, prefix)
  }
}
