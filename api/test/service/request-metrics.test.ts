// Operators' metrics of requests: each is counted once, by its outcome.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { parseKeyring } from '@spillway/queue/client'
import { resultKey } from '@spillway/queue/wire/reply'
import { test } from 'vitest'
import type { LiveState } from '../../src/ops/live.ts'
import { newRefreshToken, RefreshTokenTags } from '../../src/sessions/sessions.ts'
import { asIs, assertProblem, expect, keepTicket, newCredentials, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

const system = await openSystem()

test('a ticket counts as redeemed by its answer, and not by a request that cannot be read', async () => {
  const { api, opsUrl } = await system.gateway()
  const { ticket } = expect(202, await api.register(newCredentials(), respondAsync))
  const bodies: [string, string, number][] = [
    ['{"ticket":', 'application/json', 400],
    ['{}', 'application/json', 422],
    ['{}', 'text/plain', 415],
    [JSON.stringify({ ticket: 'x'.repeat(60_000) }), 'application/json', 413],
  ]
  for (const [body, contentType, status] of bodies) {
    const init = { method: 'POST', headers: { 'content-type': contentType }, body }
    assert.equal((await fetch(`${api.url}/v1/tickets/redeem`, init)).status, status)
  }
  assertProblem(await api.redeem('made.up'), 400, 'invalid_ticket')
  const events = await until(async () => {
    const counted = await series(opsUrl, 'spillway_tickets_total')
    return counted['{event="invalid"}'] === 1 ? counted : undefined
  })
  assert.equal(events['{event="redeemed"}'], 0)

  await system.worker()
  await until(async () => (await api.redeem(ticket)).status === 201)
  await until(async () => (await series(opsUrl, 'spillway_tickets_total'))['{event="redeemed"}'] === 1)
})

test('a part that is not reachable is a failure, and neither a refusal nor fine', async (t) => {
  const { api, opsUrl, proxy } = await system.behindProxy(t, 'DATABASE_URL', { LIMIT_PER_ACCOUNT: '1' })
  proxy.refuse()
  const credentials = newCredentials()
  const tags = new RefreshTokenTags(parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? ''))
  assertProblem(await api.refresh(tags.tag(newRefreshToken(randomUUID())), asIs), 503, 'unavailable')
  assertProblem(await api.login(credentials, asIs), 503, 'unavailable')
  assertProblem(await api.login(credentials), 429, 'too_many_requests')
  // The answer of a moment ago may still be good.
  await until(async () => (await api.call('GET', '/readyz')).status === 503)

  const { requests, findings } = await until(async () => {
    const live: LiveState = JSON.parse(await (await fetch(`${opsUrl}/live.json`)).text())
    return live.requests.failed + live.requests.refused === 3 ? live : undefined
  })
  assert.deepEqual([requests.failed, requests.refused], [2, 1])
  const told = findings.map(({ title, detail }) => `${title}: ${detail}`)
  assert.deepEqual(told.slice(-2), [
    'PostgreSQL does not answer: 2 requests to this gateway in the last minute',
    'Rate limits refuse requests: 1 request to this gateway in the last minute',
  ])
  const probes = await until(async () => {
    const counted = Object.keys(await series(opsUrl, 'spillway_http_requests_total'))
    const failing = counted.filter((labels) => labels.includes('/readyz') && labels.includes('status="503"'))
    return failing.length > 0 ? failing : undefined
  })
  const outcomes = probes.map((labels) => /outcome="(\w+)"/.exec(labels)?.[1])
  assert.deepEqual(outcomes, ['failing'])
})

test('a redemption that the database cannot answer does not count as redeemed, and an answered one does', async (t) => {
  const { api, opsUrl, proxy } = await system.behindProxy(t, 'DATABASE_URL')
  const { ticket } = expect(202, await api.login(await api.newAccount(), respondAsync))
  await until(() => system.redis.exists(resultKey(system.namespace.queuePrefix, ticket.split('.')[0] ?? '')))
  proxy.refuse()
  expect(202, await api.redeem(ticket, keepTicket))
  proxy.restore()
  await until(async () => (await api.redeem(ticket)).status === 200)
  const redeemed = await until(async () => (await series(opsUrl, 'spillway_tickets_total'))['{event="redeemed"}'])
  assert.equal(redeemed, 1)
})

/** The values of a gateway's metric, by its labels. */
async function series(opsUrl: string, name: string): Promise<Record<string, number>> {
  const page = await (await fetch(`${opsUrl}/metrics`)).text()
  const lines = page.split('\n').filter((line) => line.startsWith(`${name}{`))
  return Object.fromEntries(
    lines.map((line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(name.length, end), Number(line.slice(end))]
    }),
  )
}
