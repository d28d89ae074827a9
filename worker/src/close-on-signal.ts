/** The end of a process that is told to stop. A door of its own: gateways end in the same way. */
import type { Logger } from './log.js'

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
    try {
      await close()
      process.exit(0)
    } catch (error) {
      log.error({ err: error }, `${name} not closed in order`)
      process.exit(1)
    }
  }
  process.on('SIGTERM', stop).on('SIGINT', stop)
}
