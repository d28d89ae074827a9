/** Runs a worker as a process: configuration, signals, exit with 1 when it cannot start. */

import { setFlagsFromString } from 'node:v8'
import { createLogger } from '@spillway/common/log'
import { closeOnSignal } from '@spillway/common/shutdown'
import { readWorkerConfig } from './config.js'
import { RunningWorker } from './consumer/start.js'
import type { Hasher } from './hashing/index.js'

/** @param loadHasher tests inject another */
export async function start(
  env: NodeJS.ProcessEnv,
  concurrency: number,
  loadHasher?: typeof Hasher.load,
): Promise<void> {
  try {
    const config = readWorkerConfig(env)
    const log = createLogger({ service: 'worker', level: config.logLevel })
    let worker: RunningWorker | undefined
    // Installed before the start, so that a worker that still waits for Redis can be stopped.
    closeOnSignal('worker', log, async () => worker?.close())
    worker = await RunningWorker.start(config, concurrency, log, env, loadHasher)
    log.info({ engines: worker.engines }, worker.hashing)
    log.info({ opsUrl: worker.opsUrl, concurrency: worker.slots, engines: worker.engines }, 'worker ready')
    log.flush()
    growNewSpace()
  } catch (error) {
    process.stderr.write(`The worker cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}

/**
 * In V8's initial megabyte, collecting new objects takes a quarter of a busy event loop; in four, half
 * as much. V8 enlarges the space when more objects survive than fit into it: here once, not twice.
 */
function growNewSpace(): void {
  setFlagsFromString('--semi-space-growth-factor=4')
  Array.from({ length: 80_000 }, (_, n) => ({ n }))
  setFlagsFromString('--semi-space-growth-factor=1')
}
