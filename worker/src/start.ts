/** Runs a worker as a process: configuration in, signals handled, one sentence and exit code 1 when it cannot start. */

import { readWorkerConfig } from './config.js'
import { type RunningWorker, startWorker } from './consumer/start.js'
import { closeOnSignal } from './process/close-on-signal.js'
import { createLogger } from './process/log.js'
import { standBackAsSession } from './process/priority.js'

export async function start(env: NodeJS.ProcessEnv, concurrency: number): Promise<void> {
  try {
    const config = readWorkerConfig(env)
    const log = createLogger({ service: 'worker', level: config.LOG_LEVEL })
    let worker: RunningWorker | undefined
    // A fallback has no business without its gateway.
    if (config.SPILLWAY_FALLBACK) process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
    // From the beginning: a worker that still looks for Redis can be stopped as well.
    closeOnSignal('worker', log, async () => worker?.close())
    worker = await startWorker(config, concurrency, log)
    standBackAsSession()
    log.info({ engines: worker.engines }, worker.hashing)
    log.info({ opsUrl: worker.opsUrl, concurrency, engines: worker.engines }, 'worker ready')
    log.flush()
  } catch (error) {
    process.stderr.write(`The worker cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
