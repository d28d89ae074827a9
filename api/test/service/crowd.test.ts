// Many people behind one address: all get in, while guesses made there stay within the limit.
import assert from 'node:assert/strict'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { parseKeyring } from '@spillway/queue/client'
import { test } from 'vitest'
import { readGatewayConfig } from '../../src/config.ts'
import { Guessing } from '../../src/limits/guessing.ts'
import { GatewayMetrics } from '../../src/ops/metrics.ts'
import { gatedAccount, slowAccount } from '../account.ts'
import {
  type Answer,
  assertProblem,
  atOnce,
  type Call,
  type Credentials,
  expect,
  keepTicket,
  newCredentials,
} from '../client.ts'
import { watchQueue } from '../queue.ts'
import { heldAnyway, shareSystem, whileFrozen } from '../system.ts'

const system = await shareSystem()
const { warmWorker: worker } = system
const MAX = 3
const BEHIND = 4 * MAX
const limits = {
  LIMIT_PER_ADDRESS: String(MAX),
  LIMIT_PER_ACCOUNT: '0',
  GUESSES_PER_ACCOUNT: '100',
  TRUST_PROXY: '127.0.0.1',
}
const { api } = await system.gateway(limits)
const { redis, namespace, database } = system

const from = (address: string, headers: Record<string, string> = {}): Call => ({
  headers: { 'x-forwarded-for': address, prefer: 'respond-async', ...headers },
})
const keyOf = (address: string, part = '') => `${namespace.queuePrefix}:limit:address:${address}${part}`
const countsOf = (address: string) =>
  Promise.all(['', ':pending', ':behind'].map((part) => redis.zcard(keyOf(address, part))))
const untilCounted = (address: string, counts: number[]) =>
  until(async () => assert.deepEqual(await countsOf(address), counts) ?? true)
const statusesOf = (answers: readonly Answer[]) => answers.map(({ status }) => status).toSorted()
const repeated = (status: number, count: number) => Array.from({ length: count }, () => status)
let addresses = 0
/** Gateways remember whom they refused. */
const newAddress = () => `203.0.113.${++addresses}`
/** Whose password is verified in no time. */
const newUser = () => slowAccount(database, 1)
/** An address of which nobody is known. */
const guess = (address: string) => api.login(newCredentials(), from(address))

/** Redeems until there is an answer. */
async function answerTo(given: Answer, options: Call = {}): Promise<Answer> {
  let answer = given
  expect(202, given)
  await until(async () => {
    answer = await api.redeem(answer.body.ticket, { ...options, ...keepTicket })
    return answer.status !== 202
  })
  return answer
}

/** Logins that come while no worker takes a job, as in a crowd that is faster than hashing */
const loginsOf = (users: readonly Credentials[], address: string) =>
  whileFrozen(worker, () => Promise.all(users.map((user) => api.login(user, from(address)))))

test('five times as many people as may fail get in at once from one address, and nothing counts afterwards', async () => {
  const address = newAddress()
  const tickets = await loginsOf(await atOnce(MAX + BEHIND, newUser), address)
  assert.deepEqual(statusesOf(tickets), repeated(202, MAX + BEHIND))
  assert.deepEqual(statusesOf(await Promise.all(tickets.map((each) => answerTo(each)))), repeated(200, MAX + BEHIND))
  await untilCounted(address, [0, 0, 0])
})

test('whoever comes beyond that is told to come again in a moment, and is not kept out', async () => {
  const address = newAddress()
  const users = await atOnce(MAX + BEHIND + 1, newUser)
  const answers = await loginsOf(users, address)
  assert.deepEqual(statusesOf(answers), [...repeated(202, MAX + BEHIND), 429])
  const refused = answers.find(({ status }) => status === 429)
  assert.equal(refused?.headers.get('retry-after'), '5')
  for (const each of answers) if (each.status === 202) expect(200, await answerTo(each))
  await untilCounted(address, [0, 0, 0])
  expect(202, await api.login(users.at(-1) ?? newCredentials(), from(address)))
})

test('of any number of guesses at once as many are hashed as may fail, wherever and however often their tickets are redeemed', async () => {
  const address = newAddress()
  const tickets = await loginsOf(await atOnce(MAX + BEHIND, async () => newCredentials()), address)
  /** Redeems each several times at once, from new addresses, until as many hashes as may fail */
  async function hashedOf(waiting: readonly Answer[]): Promise<Answer[]> {
    const hashed = new Set<Answer>()
    for (let n = 0; n < 3 * waiting.length || hashed.size < MAX; n += waiting.length) {
      const redeemed = waiting
        .flatMap((given) => [given, given])
        .map(async (given, each) => {
          const headers = { 'x-forwarded-for': `192.0.2.${n + each}`, prefer: 'wait=1' }
          const { status } = await api.redeem(String(given.body.ticket), { headers })
          if (status !== 202) hashed.add(given)
          return status
        })
      const statuses = await Promise.all(redeemed)
      assert.ok(statuses.every((status) => [202, 401, 409].includes(status)))
    }
    return [...hashed]
  }
  const hashed = await hashedOf(tickets)
  assert.equal(hashed.length, MAX)
  await untilCounted(address, [MAX, 0, BEHIND])
  assertProblem(await guess(address), 429, 'too_many_requests')
  // As it is a minute later.
  await redis.del(keyOf(address))
  assert.equal((await hashedOf(tickets.filter((given) => !hashed.includes(given)))).length, MAX)
})

test('right passwords buy no guesses', async () => {
  const address = newAddress()
  const user = await newUser()
  for (let n = 0; n < MAX; n += 1) {
    for (let right = 0; right < 2; right += 1) expect(200, await answerTo(await api.login(user, from(address))))
    expect(401, await answerTo(await guess(address)))
  }
  assertProblem(await guess(address), 429, 'too_many_requests')
  assert.deepEqual(await countsOf(address), [MAX, 0, 0])
})

test('an attempt is given back to the address that made it, wherever its ticket is redeemed', async () => {
  const [address, elsewhere] = [newAddress(), newAddress()]
  const ticket = await api.login(await newUser(), from(address))
  expect(401, await answerTo(await guess(elsewhere), from(elsewhere)))
  assert.deepEqual(await countsOf(address), [0, 1, 0])
  expect(200, await answerTo(ticket, from(elsewhere)))
  await untilCounted(address, [0, 0, 0])
  assert.deepEqual(await countsOf(elsewhere), [1, 0, 0])
})

test('known devices do not count, and get in from an address that is refused; a token of another account does not help', async () => {
  const address = newAddress()
  const [owner, other] = [await newUser(), await newUser()]
  const { deviceToken } = expect(200, await answerTo(await api.login(owner, from(newAddress()))))
  const known = from(address, { 'spillway-device': deviceToken })
  for (let n = 0; n < 2 * MAX; n += 1) expect(200, await answerTo(await api.login(owner, known)))
  assert.deepEqual(await countsOf(address), [0, 0, 0])
  for (let n = 0; n < MAX; n += 1) expect(401, await answerTo(await api.login(newCredentials(), known)))
  assertProblem(await api.login(other, known), 429, 'too_many_requests')
  assertProblem(await api.login(owner, from(address)), 429, 'too_many_requests')
  expect(200, await answerTo(await api.login(owner, known)))
})

test('clients that hang up in time leave nothing behind', async (t) => {
  const address = newAddress()
  const patient = await system.gateway({ ...limits, LOGIN_WAIT_MS: '50000' }, heldAnyway)
  const queue = watchQueue(system)
  await queue.settled(0, 0)
  const { account, open } = await gatedAccount(t, database)
  const ahead = patient.api.login(account, { headers: { 'x-forwarded-for': newAddress() } })
  await queue.settled(0, 1)
  const leaving = new AbortController()
  const held = { headers: { 'x-forwarded-for': address }, signal: leaving.signal }
  const gone = atOnce(MAX, () => patient.api.login(newCredentials(), held).catch(() => undefined))
  await queue.settled(MAX, 1)
  assert.deepEqual(await countsOf(address), [0, MAX, 0])
  leaving.abort()
  await gone
  await untilCounted(address, [0, 0, 0])
  open()
  await ahead
})

test('a failure whose ticket is redeemed again may be answered again, and counts once', async () => {
  const guessing = new Guessing({
    config: readGatewayConfig({ ...system.environment, ...limits }),
    redis: { connection: redis, countFailed: assert.ifError },
    keyring: parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? ''),
    metrics: new GatewayMetrics([]),
    log: createLogger({ service: 'test', level: 'silent' }),
    nowMs: Date.now,
  })
  const attempt = { id: 'an-attempt', network: newAddress(), account: 'an account', device: null, failures: 0 }
  assert.equal(await guessing.mayStart(attempt), true)
  guessing.end(attempt, 'failed')
  await untilCounted(attempt.network, [1, 0, 0])
  assert.equal(await guessing.mayStart(attempt), true)
  assert.deepEqual(await countsOf(attempt.network), [1, 0, 0])
})
