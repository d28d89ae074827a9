/** Entry point of a gateway: reads the environment, starts it, closes it on a signal. */
import '@spillway/worker/no-inspector'

import { createLogger } from '@spillway/worker/log'
import { closeOnSignal } from '@spillway/worker/shutdown'
import { readGatewayConfig } from './config.js'
import { startGateway } from './gateway.js'

try {
  const config = readGatewayConfig(process.env)
  const log = createLogger({ service: 'gateway', level: config.LOG_LEVEL })
  const gateway = await startGateway(config, process.env, log)
  log.info({ url: gateway.url, opsUrl: gateway.opsUrl }, 'gateway listening')
  log.flush()
  closeOnSignal('gateway', log, gateway.close)
} catch (error) {
  process.stderr.write(`The gateway cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
