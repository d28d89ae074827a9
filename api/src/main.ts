/** Entry point of a gateway: reads the environment, starts it, closes it on a signal. */
import { createLogger } from '@spillway/common/log'
import { misspelledIn } from '@spillway/common/read-settings'
import { closeOnSignal } from '@spillway/common/shutdown'
import { GatewayConfig, readGatewayConfig } from './config.js'
import { type Gateway, startGateway } from './start.js'

try {
  const config = readGatewayConfig(process.env)
  const log = createLogger({ service: 'gateway', level: config.LOG_LEVEL })
  for (const sentence of misspelledIn(process.env, GatewayConfig)) log.warn(sentence)
  let gateway: Gateway | undefined
  // Installed before the start: a signal may follow the log line at once.
  closeOnSignal('gateway', log, async (interrupted) => gateway?.close(interrupted))
  gateway = await startGateway(config, process.env, log)
  const { url, opsUrl, serviceUrl } = gateway
  log.info({ url, opsUrl, serviceUrl }, 'gateway listening')
  log.flush()
} catch (error) {
  process.stderr.write(`The gateway cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
