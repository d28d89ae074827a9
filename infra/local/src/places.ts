// Where the gateways and workers of a local run listen.
import type { LocalEnvironment } from './environment.ts'
import { freePort, whyNotListen } from './port.ts'
import { Refusal } from './refusal.ts'

/** Where one gateway or worker listens. A worker has an ops port only. */
export interface Place {
  name: string
  opsPort: number
  port?: number
}

/** Gives every member its ports. Throws a Refusal if one is taken. */
export async function choosePlaces(
  { host, port, opsPort }: LocalEnvironment,
  count: { gateways: number; workers: number },
): Promise<{ gateways: Place[]; workers: Place[] }> {
  const choose = async (variable: string, listenOn: string, first: number, index: number): Promise<number> => {
    const wanted = first === 0 ? await freePort() : first + index
    const code = await whyNotListen(wanted, listenOn)
    if (code === undefined) return wanted
    if (code === 'EADDRINUSE') {
      throw new Refusal(
        `Port ${wanted} is taken: stop what listens there, or set ${variable} to the first of some free ports.`,
      )
    }
    throw new Refusal(
      `${listenOn} port ${wanted} cannot be listened on (${code}): set ${variable} or HOST to what this machine has.`,
    )
  }
  const gateways: Place[] = []
  for (let index = 0; index < count.gateways; index++) {
    gateways.push({
      name: `gateway ${index + 1}`,
      port: await choose('PORT', host, port, index),
      opsPort: await choose('OPS_PORT', '127.0.0.1', opsPort, index),
    })
  }
  const workers: Place[] = []
  for (let index = 0; index < count.workers; index++) {
    const opsIndex = count.gateways + index
    workers.push({
      name: `worker ${index + 1}`,
      opsPort: await choose('OPS_PORT', '127.0.0.1', opsPort, opsIndex),
    })
  }
  return { gateways, workers }
}

/** The host by which this machine reaches a server that listens there. */
export function hostToDial(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
