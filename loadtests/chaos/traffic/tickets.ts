// Tickets of logins, redeemed whatever becomes of the Redis that has their jobs.
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/local/processes/until'
import { type ApiAnswer, ask, redeemUntilAnswered, respondAsync } from '@spillway/local/rig/api-client'
import type { Findings } from '../scenario.ts'
import type { RedisServer } from '../stage/stage.ts'
import type { System } from '../stage/system.ts'

/** A ticket must be settled within its life: TICKET_TTL_MS. */
const LIFE_MS = 300_000
const USED_WITHIN_MS = 60_000
/** Between two logins of one gateway that look for it: the capacity is for the visitors. */
const LOOK_EVERY_MS = 100
/** Accounts that no visitor of the scenario has reached. */
const FIRST_ACCOUNT = 4_000

/** What was found out, for the findings of its scenario. */
export type Report = (findings: Findings) => void

/** So many logins at once, each answered with a ticket. */
export async function takeTickets(system: System, count: number): Promise<ApiAnswer[]> {
  const login = (n: number) => askAt(system, n, '/v1/login', { ...loginOf(system, n), ...respondAsync })
  return await Promise.all(Array.from({ length: count }, (_, n) => login(n)))
}

/** Redeems all of them as clients do: after `ticket_lost` the first request is sent again. Each must end with a session. */
export async function redeemAll(system: System, given: readonly ApiAnswer[]): Promise<Report> {
  const startMs = performance.now()
  let sentAgain = 0
  const redeeming = (n: number) => ({
    redeem: (ticket: string) => askAt(system, n + 1, '/v1/tickets/redeem', { body: { ticket } }),
    endMs: startMs + LIFE_MS,
  })
  const ends = await Promise.all(
    given.map(async (first, n) => {
      const end = await redeemUntilAnswered(first, redeeming(n))
      if (end.body.code !== 'ticket_lost') return end
      sentAgain += 1
      return await redeemUntilAnswered(await askAt(system, n, '/v1/login', loginOf(system, n)), redeeming(n))
    }),
  )
  const tookS = ((performance.now() - startMs) / 1_000).toFixed(1)
  const bad = ends.filter(({ status }) => status !== 200).map(({ status, text }) => `${status} ${text.slice(0, 100)}`)
  return (findings) => {
    findings.notes.push(`${given.length} tickets answered within ${tookS} s, ${sentAgain} after 410 ticket_lost`)
    findings.expect(
      given.every(({ status }) => status === 202),
      'a login that asked for a ticket got no ticket',
    )
    findings.expect(bad.length === 0, `${bad.length} tickets came to nothing: ${bad.slice(0, 3).join(', ')}`)
  }
}

/** How soon every gateway adds jobs to this Redis again. */
export async function usedAgain(system: System, server: RedisServer): Promise<Report> {
  const startMs = performance.now()
  const adds = async (n: number): Promise<boolean> => {
    const { body } = await askAt(system, n, '/v1/login', { ...loginOf(system, n), ...respondAsync })
    const job = `${system.queuePrefix}:passwords:${body.ticket?.split('.')[0]}`
    if (Number(await server.command('EXISTS', job)) === 1) return true
    await sleep(LOOK_EVERY_MS)
    return false
  }
  const used = await Promise.all(
    system.gateways.map((_, n) => until(() => adds(n), { timeoutMs: USED_WITHIN_MS }).catch(() => false)),
  )
  const tookS = ((performance.now() - startMs) / 1_000).toFixed(1)
  return (findings) => {
    findings.notes.push(`used again after ${tookS} s`)
    findings.expect(used.every(Boolean), `it was not used again within ${USED_WITHIN_MS} ms`)
  }
}

function loginOf(system: System, n: number) {
  return { body: system.login(FIRST_ACCOUNT + n) }
}

/** Requests take turns at the gateways. */
function askAt(
  { gateways }: System,
  turn: number,
  path: string,
  options: Parameters<typeof ask>[2],
): Promise<ApiAnswer> {
  return ask(gateways[turn % gateways.length]?.url ?? '', path, options)
}
