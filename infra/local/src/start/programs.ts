// Gateways and workers as programs: their entry, their ready line, and the readiness of a gateway.
import { stopOrder } from '../processes/keeper.ts'

/** The entry is the module that Node runs, from the root of the checkout; the log line of this message has the addresses: url and opsUrl. */
export const gatewayProgram = {
  entry: 'api/dist/main.js',
  readyMessage: 'gateway listening',
  stopOrder: stopOrder.gateway,
} as const

export const workerProgram = {
  entry: 'worker/dist/main.cjs',
  readyMessage: 'worker ready',
  stopOrder: stopOrder.worker,
} as const

export type Program = typeof gatewayProgram | typeof workerProgram

/** Reads a gateway's readiness, and how many workers it knows of. Rejects when it does not answer. */
export async function readinessOf(gatewayUrl: string) {
  const response = await fetch(`${gatewayUrl}/readyz`)
  const text = await response.text()
  const { workers }: { workers: number } = JSON.parse(text)
  return { ready: response.ok, workers, text }
}
