/** Entry point of a gateway: reads the environment, listens, closes on a signal. */
import { createLogger } from '@spillway/worker/log'
import { readGatewayConfig } from './config.js'
import { startGateway } from './gateway.js'

try {
  const config = readGatewayConfig(process.env)
  const log = createLogger({ service: 'gateway', level: config.LOG_LEVEL })
  const gateway = await startGateway(config, process.env, log)
  log.info({ url: gateway.url, opsUrl: gateway.opsUrl }, 'gateway listening')
  log.flush()
  let isStopping = false
  const stop = async (signal: NodeJS.Signals) => {
    if (isStopping) return
    isStopping = true
    log.info({ signal }, 'gateway stopping')
    try {
      await gateway.close()
      process.exit(0)
    } catch (error) {
      log.error({ err: error }, 'gateway not closed in order')
      process.exit(1)
    }
  }
  process.on('SIGTERM', stop).on('SIGINT', stop)
} catch (error) {
  process.stderr.write(`The gateway cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
