// Gateways and workers as programs: what Node runs, how each says that it is ready, and what a gateway knows then.
import { stopOrder } from '../processes/keeper.ts'

export interface Program {
  /** What Node runs, from the root of the checkout. */
  entry: string
  /** The msg of the log line by which it says that it is ready, with where it listens: url and opsUrl. */
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

export interface Readiness {
  ready: boolean
  /** How many workers it knows of. */
  workers: number
  text: string
}

/** What a gateway says of its readiness. Rejects when it says nothing. */
export async function readinessOf(gatewayUrl: string): Promise<Readiness> {
  const response = await fetch(`${gatewayUrl}/readyz`)
  const text = await response.text()
  return { ready: response.ok, workers: JSON.parse(text).workers, text }
}
