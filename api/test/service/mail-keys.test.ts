// Gateways with other seal keys than those that send mails: they take none, and destroy none.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { parseKeyring } from '@spillway/queue/queue-client'
import { canaryOf } from '@spillway/queue/wire/capacity'
import { test } from 'vitest'
import { expect } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { type Clients, openSystem } from '../system.ts'

const mails = await startMailServer()
const system = await openSystem()
await system.worker()
const { redis, namespace } = system
const key = (name: string) => `${namespace.queuePrefix}:${name}`
const otherKeys = `other:${randomBytes(32).toString('base64')}`
const env = { ...mails.env, LIMIT_MAIL_PER_RECIPIENT: '0', LIMIT_MAIL_PER_NETWORK: '0' }
const right = await system.gateway(env)
const account = await right.api.newAccount()
const RESET = /Choose a new password/

async function ask({ api }: Clients): Promise<void> {
  expect(204, await api.forgotten(account.email))
}

async function outcomes({ opsUrl }: { opsUrl: string }): Promise<string[]> {
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
  return [...metrics.matchAll(/spillway_mails_total\{outcome="(\w+)"\} ([1-9]\d*)/g)].map(
    ([, what, n]) => `${what} ${n}`,
  )
}

test('a gateway whose keys are others takes no mail while one that has them is there; its own fail', async () => {
  await mails.next(account.email, /Confirm/)
  const wrong = await system.gateway({ ...env, SPILLWAY_SEAL_KEYS: otherKeys })
  for (let n = 0; n < 10; n += 1) {
    await ask(right)
    await mails.next(account.email, RESET, n)
  }
  assert.deepEqual(await outcomes(wrong), [])
  await ask(wrong)
  await until(async () => (await outcomes(right)).includes('forged 1'))
  await wrong.close()
})

test('a mail that does not open goes back, and another gateway sends it', async () => {
  // As where neither gateway could see the other.
  const canary = canaryOf(parseKeyring(otherKeys), namespace.queuePrefix)
  const timer = setInterval(() => void redis.set(key('mail-canary'), canary, 'EX', 60), 2)
  const wrong = await system.gateway({ ...env, SPILLWAY_SEAL_KEYS: otherKeys })
  await until(async () => {
    await ask(wrong)
    return (await outcomes(wrong)).some((outcome) => outcome.startsWith('sent'))
  })
  clearInterval(timer)
  // Each sees the canary of the other when it writes its own, once a second.
  const canaryIsOf = (keys: string) =>
    until(async () => (await redis.get(key('mail-canary'))) === canaryOf(parseKeyring(keys), namespace.queuePrefix))
  for (let n = 0; n < 2; n += 1) {
    await canaryIsOf(system.environment.SPILLWAY_SEAL_KEYS ?? '')
    await canaryIsOf(otherKeys)
  }
  const [sent, before] = [
    mails.to(account.email).length,
    (await outcomes(wrong)).filter((each) => /^forged/.test(each)),
  ]
  for (let n = 0; n < 20; n += 1) await ask(right)
  await until(() => mails.to(account.email).length >= sent + 20, { what: 'twenty mails' })
  const forged = (await outcomes(wrong)).filter((each) => /^forged/.test(each))
  assert.deepEqual(forged, before)
})
