/** Runs a worker as a process: configuration in, signals handled, one sentence and exit code 1 when it cannot start. */
import { readWorkerConfig } from './config.js'
import { createLogger } from './log.js'
import { type RunningWorker, startWorker } from './run.js'
import { standBackAsSession } from './stand-back.js'

export async function start(env: NodeJS.ProcessEnv, concurrency: number): Promise<void> {
  try {
    const config = readWorkerConfig(env)
    const log = createLogger({ service: 'worker', level: config.LOG_LEVEL })
    let worker: RunningWorker | undefined
    // A fallback has no business without its gateway.
    if (config.SPILLWAY_FALLBACK) process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
    // From the beginning: a worker that still looks for Redis can be stopped as well.
    let isStopping = false
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, async () => {
        // A second one hurries nothing: often several come, of a terminal and of whoever started this process.
        if (isStopping) return
        isStopping = true
        log.info({ signal }, 'worker stopping')
        await worker?.close()
        process.exit(0)
      })
    }
    worker = await startWorker(config, concurrency, log)
    standBackAsSession()
    log.info({ opsUrl: worker.opsUrl, concurrency, engines: worker.engines }, 'worker ready')
    log.flush()
  } catch (error) {
    process.stderr.write(`The worker cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
