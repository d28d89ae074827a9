/** Runs a worker as a process: configuration, signals, exit with 1 when it cannot start. */

import { createLogger } from '@spillway/common/log'
import { misspelledIn } from '@spillway/common/read-settings'
import { closeOnSignal } from '@spillway/common/shutdown'
import { readWorkerConfig, WorkerConfig } from './config.js'
import { RunningWorker } from './consumer/start.js'

export async function start(env: NodeJS.ProcessEnv, concurrency: number): Promise<void> {
  try {
    const config = readWorkerConfig(env)
    const log = createLogger({ service: 'worker', level: config.LOG_LEVEL })
    for (const sentence of misspelledIn(env, WorkerConfig)) log.warn(sentence)
    let worker: RunningWorker | undefined
    // A fallback worker ends with its gateway.
    if (config.SPILLWAY_FALLBACK) process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
    // Installed before the start, so that a worker that still waits for Redis can be stopped.
    closeOnSignal('worker', log, async () => worker?.close())
    worker = await RunningWorker.start(config, concurrency, log, env)
    log.info({ engines: worker.engines }, worker.hashing)
    log.info({ opsUrl: worker.opsUrl, concurrency: worker.slots, engines: worker.engines }, 'worker ready')
    log.flush()
  } catch (error) {
    process.stderr.write(`The worker cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
