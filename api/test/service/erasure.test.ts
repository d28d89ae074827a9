// A deleted person: nothing of them is in a table, a key or a mail that waits.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { parseKeyring } from '@spillway/queue/client'
import { Queue } from 'bullmq'
import { afterAll, test } from 'vitest'
import { deletedAddressDigests } from '../../src/accounts/deletion.ts'
import { accountDigest, accountNamesOf, accountOfEmail } from '../../src/limits/limits.ts'
import { openMail } from '../../src/mail/outbox.ts'
import { assertProblem, expect, newCredentials } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { Operator, told } from '../operators.ts'
import { readKeyspace, Secrets } from '../secret-search.ts'
import { openSystem } from '../system.ts'

const mails = await startMailServer()
const system = await openSystem()
await system.worker()
const limits = { LIMIT_PER_ACCOUNT: '100', GUESSES_PER_ACCOUNT: '100', LIMIT_MAIL_PER_RECIPIENT: '50' }
const { api, opsUrl } = await system.gateway({ ...mails.env, ...limits })
const operator = new Operator(opsUrl)
const keyring = parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? '')
const mailQueue = new Queue('mail', { connection: system.redis, prefix: system.namespace.queuePrefix })
afterAll(() => mailQueue.close())

/** Every row of every table, as text. */
async function readDatabase(): Promise<Map<string, string>> {
  const { database } = system
  const tables: { name: string }[] = await database.$queryRaw`
    SELECT tablename::text AS name FROM pg_tables WHERE schemaname = current_schema()`
  const read = tables.map(async ({ name }) => {
    const rows = await database.$queryRawUnsafe(`SELECT row_to_json(found)::text AS row FROM "${name}" AS found`)
    return [name, JSON.stringify(rows)] as const
  })
  return new Map(await Promise.all(read))
}

/** Every mail that waits or has failed, opened. */
async function readMails(): Promise<string> {
  const jobs = await mailQueue.getJobs(['wait', 'active', 'delayed', 'prioritized', 'failed', 'completed'])
  return JSON.stringify(jobs.map((job) => openMail(keyring, job) ?? assert.fail('a mail that does not open')))
}

/** Deletes the counts of mails of a person, which lapse within an hour. */
async function forgetMailCounts(names: readonly string[]): Promise<void> {
  const keys = names.map((name) => `${system.namespace.queuePrefix}:limit:mail:${name}`)
  for (const key of keys) assert.ok((await system.redis.pttl(key)) <= 3_600_000)
  await system.redis.del(keys)
}

/** An account with all that a person can leave, and where it is found. */
async function newPerson() {
  const { account, accessToken, deviceToken } = await api.signedIn()
  const { email, password } = account
  const { id } = told(200, await operator.find(email))
  // Sessions, links, counts of failures by unknown and known devices, counts of requests and mails.
  expect(204, await api.changeEmail(accessToken, newCredentials().email, password))
  expect(401, await api.login({ email, password: 'wrong' }))
  expect(401, await api.login({ email, password: 'wrong' }, { headers: { 'spillway-device': deviceToken } }))
  expect(401, await api.verifyPassword(accessToken, 'wrong'))
  await mails.next(email, /Confirm your e-mail/)
  mails.refused.set(email, 550)
  expect(204, await api.forgotten(email))
  await until(async () => (await mailQueue.getFailedCount()) === 1, { what: 'a mail that failed' })
  mails.refused.delete(email)
  // Somebody else asked to be changed to the address.
  const other = await api.newAccount()
  const { id: otherId } = told(200, await operator.find(other.email))
  const link = { tokenHash: randomBytes(32), purpose: 'change', userId: otherId, email, credentialVersion: 1 }
  await system.database.mailToken.create({
    data: { id: crypto.randomUUID(), ...link, expiresAt: new Date(Date.now() + 60_000) },
  })

  const names = [accountOfEmail(email), accountDigest(id)].flatMap((account) => accountNamesOf(account, keyring))
  const person = new Secrets()
  person.add('address', email)
  for (const name of names) person.add('name in Redis', name)
  const found = async () => {
    const texts = new Map([
      ...(await readDatabase()),
      ['Redis', await readKeyspace(system.redis)],
      ['mails', await readMails()],
    ])
    return [...texts].filter(([, text]) => person.foundIn(text).length > 0).map(([place]) => place)
  }
  assert.deepEqual(new Set(await found()), new Set(['users', 'mail_tokens', 'Redis', 'mails']))
  await until(async () => {
    const counts = await mailQueue.getJobCounts('wait', 'active', 'delayed')
    return Object.values(counts).every((count) => count === 0)
  })
  return { ...account, id, accessToken, other, names, found }
}

test('an owner who deletes the account leaves as little; a mail that is being sent is waited for', async () => {
  const { email, password, accessToken, names, found } = await newPerson()
  let release = () => {}
  mails.hold = new Promise((resolve) => {
    release = resolve
  })
  expect(204, await api.forgotten(email))
  await until(() => mails.held() > 0)
  const deleting = api.deleteAccount(accessToken, password)
  await until(async () => (await mailQueue.getFailedCount()) === 0, { what: 'mails being removed' })
  assert.equal(await system.database.user.count({ where: { email } }), 1)
  release()
  mails.hold = undefined
  expect(204, await deleting)
  await mails.next(email, /was deleted/)
  await until(async () => (await mailQueue.getActiveCount()) === 0)
  await forgetMailCounts(names)
  assert.deepEqual(await found(), [])
  assert.equal(await system.database.deletedAddress.count(), 2)
})

test('an address that an account has left, by a link or by an operator, is left out by imports', async () => {
  const { account, accessToken } = await api.signedIn()
  const next = newCredentials().email
  expect(204, await api.changeEmail(accessToken, next, account.password))
  expect(204, await api.confirmEmail((await mails.next(next, /Confirm your new/)).token))
  const { id } = told(200, await operator.find(next))
  told(200, await operator.on(id, 'change-email', { email: newCredentials().email }))
  const digests = [account.email, next].map((email) => new Uint8Array(deletedAddressDigests(email, keyring)[0]))
  assert.equal(await system.database.deletedAddress.count({ where: { digest: { in: digests } } }), 2)
})

test('a person whom an operator deleted is in no table but the audit by id, in no key and in no mail', async () => {
  const { id, email, password, accessToken, other, names, found } = await newPerson()
  await mails.stop()
  expect(204, await api.call('POST', '/v1/me/email/confirmation', { token: accessToken }))
  expect(204, await api.forgotten(email))
  await until(async () => (await mailQueue.getDelayedCount()) === 2, { what: 'mails that wait' })
  const byId = new Secrets()
  byId.add('id', id)
  const { mails: waiting } = told(200, await operator.on(id, 'export'))
  const kinds = waiting.map(({ kind }) => kind)
  assert.deepEqual([kinds.sort(), waiting.some((mail) => 'token' in mail)], [['confirm', 'reset', 'reset'], false])
  assert.deepEqual(told(200, await operator.on(id, 'delete')), { changed: 1 })
  await until(
    async () => (await system.database.auditEvent.count({ where: { userId: id, event: 'delete_account' } })) === 1,
  )
  await forgetMailCounts(names)
  assert.deepEqual(await found(), [])
  const rows = [...(await readDatabase())].filter(([, text]) => byId.foundIn(text).length > 0)
  assert.deepEqual(
    rows.map(([table]) => table),
    ['audit_events'],
  )
  assert.ok(!(await readMails()).includes(id))
  assertProblem(await operator.find(id), 404, 'account_not_found')
  expect(401, await api.login({ email, password }))
  // Nobody else has lost anything.
  told(200, await operator.find(other.email))
})
