/** Runs a worker as a process: configuration, signals, exit with 1 when it cannot start. */

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
  } catch (error) {
    process.stderr.write(`The worker cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
