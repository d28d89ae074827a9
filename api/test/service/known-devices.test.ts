// A known device logs in while strangers fill the queue; a token that is not its own helps nobody.

import assert from 'node:assert/strict'
import { readMetric } from '@spillway/infra/harness/api-client'
import { withDoubles } from '@spillway/infra/harness/spillway'
import { until } from '@spillway/infra/processes/until'

import { test } from 'vitest'
import { gatedAccount, slowAccount } from '../account.ts'
import { asIs, assertProblem, expect, letIn, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

const system = await openSystem()
await system.worker({ SHUTDOWN_GRACE_MS: '0' }, withDoubles)
const MAX_OUTSTANDING = 3
const full = { MAX_OUTSTANDING: String(MAX_OUTSTANDING), GUESSES_PER_ACCOUNT: '100', LOGIN_WAIT_MS: '30000' }
const { api, opsUrl } = await system.gateway(full)

const known = (token: string) => ({ headers: { 'spillway-device': token } })
const jobsOf = (place: string, ops = opsUrl) => readMetric(ops, 'spillway_jobs_added_total', `place="${place}"`)

test('a device that became unknown since its last login has the place of a stranger', async () => {
  // Its own gateway: quick logins count until the queue is read again, and fill the other one.
  const { api, opsUrl: ops } = await system.gateway()
  const owner = await slowAccount(system.database, 1)
  const { deviceToken } = expect(200, await api.login(owner))
  await system.database.user.update({ where: { email: owner.email }, data: { credentialVersion: { increment: 1 } } })
  const before = await jobsOf('first', ops)
  expect(200, await api.login(owner, known(deviceToken)))
  assert.equal(await jobsOf('first', ops), before)
})

test('a known device is let in and answered before those who wait, where a stranger is refused', async (t) => {
  const [owner, other] = await Promise.all([slowAccount(system.database, 300), slowAccount(system.database, 300)])
  const { account: stranger, open } = await gatedAccount(t, system.database)
  const mine = expect(200, await api.login(owner)).deviceToken
  const others = expect(200, await api.login(other)).deviceToken
  const before = await jobsOf('first')
  await letIn(MAX_OUTSTANDING, () => api.login(stranger, { ...respondAsync, ...asIs }))

  const [device, issuedAt = '', signature] = mine.split('.')
  const useless = ['', 'x', others, `${device}.${Number(issuedAt) + 1}.${signature}`, `${mine}x`]
  const refused = await Promise.all(useless.map((token) => api.login(owner, { ...known(token), ...asIs })))
  for (const answer of refused) assertProblem(answer, 503, 'busy')
  const letInFirst = api.login(owner, known(mine))
  await until(async () => (await jobsOf('first')) === before + 1)
  open()
  const { deviceToken } = expect(200, await letInFirst)
  assert.notEqual(deviceToken, mine)
})
