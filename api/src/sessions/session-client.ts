/** The client that a session is opened for, as its owner sees it in the list of sessions. */
import type { FastifyRequest } from 'fastify'
import { withoutPort } from '../limits/client-network.js'

/** Longer ones are cut: the beginning tells devices apart. */
const DEVICE_MAX_LENGTH = 256
const ADDRESS_MAX_LENGTH = 64

export interface SessionClient {
  /** Its User-Agent, printable ASCII alone; null without one. */
  device: string | null
  /** As the connection or the proxy reports it. */
  address: string
}

export function sessionClientOf({ headers, ip }: FastifyRequest): SessionClient {
  const device = (headers['user-agent'] ?? '')
    .replace(/[^ -~]/g, '')
    .trim()
    .slice(0, DEVICE_MAX_LENGTH)
  return { device: device === '' ? null : device, address: withoutPort(ip).slice(0, ADDRESS_MAX_LENGTH) }
}
