// A client of the API for operators.
import { type Answer, type Call, Client, expect, type Told } from './client.ts'

const REASON = 'asked by telephone'

export class Operator extends Client {
  find(account: string): Promise<Told> {
    return this.call('POST', '/v1/accounts/find', { body: { account } })
  }

  /** One change of an account, or a call on it. */
  on(id: string, path: string, body: object = {}, options?: Call): Promise<Told> {
    return this.call('POST', `/v1/accounts/${id}/${path}`, { ...options, body: { reason: REASON, ...body } })
  }

  block(network: string, untilMs = Date.now() + 60_000): Promise<Told> {
    return this.call('POST', '/v1/blocks', {
      body: { network, until: new Date(untilMs).toISOString(), reason: REASON },
    })
  }

  unblock(network: string): Promise<Told> {
    return this.call('POST', '/v1/blocks/lift', { body: { network, reason: REASON } })
  }
}

interface OperatorBody {
  id: string
  email: string
  createdAt: string
  changed: number
  confirmedAt: string | null
  disabledAt: string | null
  lastLoginAt: string | null
  failures: { failures: number; waitUntil: string | null; failedDevices: number }
  sessions: { id: string; address: string; createdAt: string }[]
  blocks: { network: string; operator: string; reason: string }[]
  account: { email: string }
  links: { purpose: string; email: string }[]
  unsentMails: { kind: string; at: string; state: string; reason: string | null }[] | null
  mails: { kind: string; email: string }[]
  audit: { outcome: string; isKnownDevice: boolean | null }[]
}

/** Checks the status and gives the body. */
export function told(status: number, answer: Answer): OperatorBody {
  return Object(expect(status, answer))
}
