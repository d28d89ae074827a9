/** Entry point of a gateway: reads the environment, starts it, closes it on a signal. */
import { createLogger } from '@spillway/common/log'
import { closeOnSignal } from '@spillway/common/shutdown'
import { readGatewayConfig } from './config.js'
import { type Gateway, startGateway } from './start.js'

try {
  const config = readGatewayConfig(process.env)
  const log = createLogger({ service: 'gateway', level: config.logLevel })
  let gateway: Gateway | undefined
  // Installed before the start, because a signal may come right after the log line.
  closeOnSignal('gateway', log, async (interrupted) => gateway?.close(interrupted))
  gateway = await startGateway(config, process.env, log)
  const { url, opsUrl, serviceUrl } = gateway
  log.info({ url, opsUrl, serviceUrl }, 'gateway listening')
  log.flush()
} catch (error) {
  process.stderr.write(`The gateway cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
