/** The end of a process that is told to stop. A door of its own: gateways end in the same way. */

import { within } from '@spillway/client/within'
import type { Logger } from './log.js'

/** How long the log's last lines are waited for: nobody may be reading them. */
const LAST_LINES_MS = 1_000

/**
 * Closes at the first SIGTERM or SIGINT, and ends the process: with 0, or with 1 when closing failed. A second signal hurries
 * nothing: often several come, of a terminal and of whoever started this process.
 */
export function closeOnSignal(name: 'gateway' | 'worker', log: Logger, close: () => Promise<void>): void {
  let isStopping = false
  async function stop(signal: NodeJS.Signals): Promise<void> {
    if (isStopping) return
    isStopping = true
    log.info({ signal }, `${name} stopping`)
    let code = 0
    try {
      await close()
    } catch (error) {
      code = 1
      log.error({ err: error }, `${name} not closed in order`)
    }
    await within(LAST_LINES_MS, new Promise<void>((resolve) => log.flush(() => resolve())))
    process.exit(code)
  }
  process.on('SIGTERM', stop).on('SIGINT', stop)
}
