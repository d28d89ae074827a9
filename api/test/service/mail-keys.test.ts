// Gateways with other seal keys than those that send mails: they take none, and destroy none.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { monitorRedis } from '@spillway/infra/rig/redis-monitor'
import { parseKeyring } from '@spillway/queue/queue-client'
import { canaryOf } from '@spillway/queue/wire/capacity'
import { onTestFinished, test } from 'vitest'
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

test('a mail that does not open goes back, however often, and another gateway sends it', async () => {
  const monitor = await monitorRedis(namespace.redisUrl)
  onTestFinished(() => monitor.close())
  const otherCanary = canaryOf(parseKeyring(otherKeys), namespace.queuePrefix)
  /** Whether a gateway with the other keys, or with the right ones, has written the canary since. */
  const hasWritten = (other: boolean, since: number) =>
    monitor.commands.findIndex(({ command: [name, at, keys], byScript }, n) => {
      return n >= since && byScript && name === 'set' && at === key('mail-canary') && (keys === otherCanary) === other
    }) + 1
  // As where neither gateway could see the other.
  const overwrite = () => redis.set(key('mail-canary'), otherCanary, 'EX', 60)
  await overwrite()
  const timer = setInterval(() => void overwrite(), 2)
  await until(() => hasWritten(false, 0))
  const wrong = await system.gateway({ ...env, SPILLWAY_SEAL_KEYS: otherKeys })
  await ask(wrong)
  await until(async () => (await outcomes(wrong)).includes('sent 1'))
  clearInterval(timer)
  await overwrite()
  // Each sees the canary of the other when it writes its own, once a second.
  const since = monitor.commands.length
  await until(() => hasWritten(false, since) > 0 && hasWritten(true, hasWritten(false, since)))

  // All four places for mails of the right gateway are taken: the other one gets the rest again and again.
  let release = () => {}
  mails.hold = new Promise((resolve) => {
    release = resolve
  })
  /** A mail that is sent again, by a slow machine, has its id again. */
  const distinct = () => new Set(mails.to(account.email).map(({ id }) => id)).size
  const sent = distinct()
  for (let n = 0; n < 7; n += 1) await ask(right)
  const left = await until(async () => {
    const ids = await redis.zrange(key('mail:delayed'), 0, '-1')
    return ids.length === 3 ? ids : undefined
  })
  for (const id of left) await redis.hset(key(`mail:${id}`), 'ats', 100)
  for (const id of left) await until(async () => Number(await redis.hget(key(`mail:${id}`), 'ats')) > 100)
  release()
  await until(() => distinct() === sent + 7, { what: 'all seven mails' })
  assert.deepEqual(await outcomes(wrong), ['sent 1'])
})
