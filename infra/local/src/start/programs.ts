// Gateways and workers as programs: their entry, their ready line, and the readiness of a gateway.
import { stopOrder } from '../processes/keeper.ts'

export interface Program {
  /** The module that Node runs, from the root of the checkout. */
  entry: string
  /** The msg of the log line that reports that it is ready, with its addresses: url and opsUrl. */
  readyMessage: string
  stopOrder: number
}

export const gatewayProgram: Program = {
  entry: 'api/dist/main.js',
  readyMessage: 'gateway listening',
  stopOrder: stopOrder.gateway,
}

export const workerProgram: Program = {
  entry: 'worker/dist/main.cjs',
  readyMessage: 'worker ready',
  stopOrder: stopOrder.worker,
}

/** Reads a gateway's readiness, and how many workers it knows of. Rejects when it does not answer. */
export async function readinessOf(gatewayUrl: string) {
  const response = await fetch(`${gatewayUrl}/readyz`)
  const text = await response.text()
  const { workers }: { workers: number } = JSON.parse(text)
  return { ready: response.ok, workers, text }
}
