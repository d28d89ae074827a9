// The way of a mail: servers dead, slow or strict, killed gateways, and what Redis shows.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLogger } from '@spillway/common/log'
import { readMetric } from '@spillway/infra/harness/api-client'
import { canIssue, createAuthority, issue } from '@spillway/infra/harness/certificates'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { startProxy } from '@spillway/infra/harness/tcp-proxy'
import { startProcess } from '@spillway/infra/processes/node-process'
import { freePort } from '@spillway/infra/processes/port'
import { run } from '@spillway/infra/processes/run'
import { until } from '@spillway/infra/processes/until'
import { gatewayProgram } from '@spillway/infra/start/member'
import { monitorRedis } from '@spillway/infra/test/redis-monitor'
import { openQueue } from '@spillway/queue/bullmq'
import { parseKeyring, RedisWatch } from '@spillway/queue/client'
import { SMTPServer } from 'smtp-server'
import { afterAll, type TestContext, test } from 'vitest'
import { readGatewayConfig } from '../../src/config.ts'
import { MAIL_QUEUE, Outbox } from '../../src/mail/outbox.ts'
import type { MailRequest } from '../../src/mail/requests.ts'
import { Smtp } from '../../src/mail/smtp.ts'
import { MailTexts } from '../../src/mail/texts.ts'
import { newMailToken } from '../../src/mail/tokens.ts'
import { expect, fetchPatiently, newCredentials } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { Operator, told } from '../operators.ts'
import { readKeyspace, Secrets } from '../secret-search.ts'
import { openSystem, shareSystem } from '../system.ts'

const mails = await startMailServer()
const system = await shareSystem()
afterAll(() => {
  mails.hold = undefined
})
const { redis, namespace } = system
const key = (name: string) => `${namespace.queuePrefix}:mail:${name}`
const gateway = await system.gateway(mails.env)
const { api, opsUrl } = gateway
const forgotten = (email: string) => api.forgotten(email)
const RESET = /Choose a new password/

/** The ids of the mails that are in Redis, whatever their state. */
async function queued(): Promise<string[]> {
  const ids = await Promise.all([
    redis.lrange(key('wait'), 0, -1),
    redis.lrange(key('active'), 0, -1),
    redis.zrange(key('delayed'), 0, '-1'),
  ])
  return ids.flat()
}

const outcome = (name: string) => readMetric(opsUrl, 'spillway_mails_total', `outcome="${name}"`)

test('a mail server that is dead delays mails and nothing else; Redis and Bull Board show nothing of what they hold', async () => {
  const account = await api.newAccount()
  await mails.next(account.email, /Confirm/)
  await mails.stop()
  const unknown = newCredentials()
  expect(204, await forgotten(account.email))
  expect(200, await api.login(account))
  const secrets = new Secrets()
  secrets.add('address', account.email)
  secrets.add('page', 'https://app.example.test/reset')
  const retried = await outcome('retried')
  await until(async () => (await outcome('retried')) > retried && (await queued()).length > 0)
  const board = await (await fetchPatiently(`${opsUrl}/queues/api/queues?activeQueue=mail&status=delayed`)).text()
  const seen = (await readKeyspace(redis)) + board
  // While it is tried again its state is another one.
  const waiting = /^\[\{"kind":"reset","at":"[^"]+","state":"waiting","reason":"the mail server: nothing listens/
  await until(async () =>
    waiting.test(JSON.stringify(told(200, await new Operator(opsUrl).find(account.email)).unsentMails)),
  )
  await mails.start()
  const { token } = await mails.next(account.email, RESET)
  secrets.add('token', token)
  assert.deepEqual(secrets.foundIn(seen), [])
  assert.match(board, /"mail"/)
  // In one request of Redis, a mail for nobody looks as one for somebody.
  expect(204, await forgotten(unknown.email))
  await until(async () => (await queued()).length === 0)
  assert.equal(mails.to(unknown.email).length, 0)
})

test('while a mail is delayed its gateway reads often, so that its connection is not taken for dead', async (t) => {
  const monitor = await monitorRedis(namespace.redisUrl)
  t.onTestFinished(() => monitor.close())
  // As BullMQ leaves it for a mail that is to be sent in a minute.
  await redis.zadd(key('marker'), Date.now() + 60_000, '1')
  const blockedForS = () =>
    monitor.commands
      .filter(({ command: [name, of] }) => name === 'bzpopmin' && of === key('marker'))
      .map(({ command }) => Number(command.at(-1)))
  // One of the two is the first after the marker was read.
  await until(() => blockedForS().length >= 2)
  assert.ok(Math.max(...blockedForS()) <= 2, blockedForS().join())
})

test('a gateway that ends while Redis is away waits for no mail, and its exit code is 0', async (t) => {
  const proxy = await startProxy(namespace.redisUrl)
  t.onTestFinished(() => proxy.close())
  const env = { ...system.environment, ...mails.env, REDIS_URL: proxy.url }
  const leaving = startProcess({ entry: gatewayProgram.entry, env })
  t.onTestFinished(() => leaving.close())
  await leaving.waitForLog(({ msg }) => msg === gatewayProgram.readyMessage)
  proxy.refuse()
  await leaving.waitForLog(({ msg }) => msg === 'redis connection failed')
  assert.deepEqual(await leaving.stop(), { code: 0, signal: null }, leaving.output())
})

test('mails of every kind are of one length in Redis, whoever gets them', async () => {
  const outbox = openOutbox(`{lengths-${randomUUID()}}`)
  const [token, userId, email] = [newMailToken(), randomUUID(), newCredentials().email]
  const long = `${'x'.repeat(64)}@${'y'.repeat(180)}.test`
  const requests: MailRequest[] = [
    { kind: 'welcome', email, token, isNew: true },
    { kind: 'welcome', email: long, token, isNew: false },
    { kind: 'confirm', userId, token },
    { kind: 'reset', email: 'x@y.test', token },
    { kind: 'change', userId, newEmail: long, token },
    { kind: 'notice', email, notice: 'was-reset' },
  ]
  for (const request of requests) await outbox.add(request, 0)
  await outbox.close()
  const jobs = (await redis.keys('{lengths-*}:mail:*-*-*')).sort()
  const data = await Promise.all(jobs.map((job) => redis.hmget(job, 'name', 'data')))
  assert.equal(data.length, requests.length)
  assert.equal(new Set(data.map(([name, sealed]) => `${name} ${sealed?.length}`)).size, 1)
  const options = await Promise.all(jobs.map(async (job) => JSON.parse((await redis.hget(job, 'opts')) ?? '')))
  const shapes = options.map((each) => JSON.stringify(each).replaceAll(/[\w-]{80}/g, 'id'))
  assert.equal(new Set(shapes).size, 1, shapes.join(' '))
  // Some have one reader: no name of it tells so.
  const names = jobs.flatMap((job) => [job.slice(-44, -22), job.slice(-22)])
  assert.equal(new Set(names).size, 2 * requests.length, names.join(' '))
})

test('an operator finds the unsent mails of an account, and Redis is asked for no other mail', async (t) => {
  const account = await api.newAccount()
  await mails.next(account.email, /Confirm/)
  await pauseMails(t)
  for (const email of [account.email, ...Array.from({ length: 9 }, () => newCredentials().email)])
    expect(204, await forgotten(email))
  const [change, to] = [expect(200, await api.login(account)), newCredentials().email]
  expect(204, await api.changeEmail(change.accessToken, to, account.password))
  const waiting = await queued()
  const monitor = await monitorRedis(namespace.redisUrl)
  t.onTestFinished(() => monitor.close())
  const { unsentMails } = told(200, await new Operator(opsUrl).find(account.email))
  assert.deepEqual(unsentMails?.map(({ kind }) => kind).sort(), ['change', 'reset'])
  const read = () => monitor.commands.filter(({ command: [, of = ''] }) => waiting.some((id) => of === key(id)))
  await until(() => read().length >= 2)
  assert.deepEqual(
    read().map(({ command: [name] }) => name),
    ['hgetall', 'hgetall'],
  )
})

test('a link that waits while sessions end, the password or the address changes is not mailed, and a later one is', async (t) => {
  const operator = new Operator(opsUrl)
  const [ended, moved] = [await api.newAccount(), await api.newAccount()]
  const { account: owner, accessToken } = await api.signedIn()
  for (const { email } of [ended, moved, owner]) await mails.next(email, /Confirm/)
  const idOf = async ({ email }: { email: string }) => told(200, await operator.find(email)).id
  const [endedId, movedId, ownerId] = [await idOf(ended), await idOf(moved), await idOf(owner)]
  const { email: next } = newCredentials()
  const resume = await pauseMails(t)
  for (const email of [ended.email, next, owner.email]) expect(204, await forgotten(email))
  // A link that confirms the address outlives a change of the password.
  told(200, await operator.on(ownerId, 'send-confirmation'))
  await sleep(1_500)
  told(200, await operator.on(endedId, 'end-sessions'))
  told(200, await operator.on(movedId, 'change-email', { email: next, confirmed: true }))
  expect(204, await api.changePassword(accessToken, owner.password))
  for (const id of [endedId, movedId, ownerId]) told(200, await operator.on(id, 'send-reset'))
  await resume()
  for (const email of [ended.email, next, owner.email]) {
    const { token } = await mails.next(email, RESET)
    expect(200, await api.resetPassword(token))
  }
  await until(async () => (await queued()).length === 0)
  const count = (email: string, subject: RegExp) => mails.to(email).filter((mail) => subject.test(mail.subject)).length
  assert.deepEqual(
    [ended.email, next, owner.email].map((email) => count(email, RESET)),
    [1, 1, 1],
  )
  assert.equal(count(owner.email, /Confirm/), 2)
})

test('an address that the server refuses is given up at once, is found on the board, and others get their mail', async () => {
  const refused = newCredentials()
  mails.refused.set(refused.email, 550)
  const failures = () => redis.zrange(key('failed'), 0, '-1')
  const before = await failures()
  expect(201, await api.register(refused))
  const failed = await until(async () => (await failures()).find((id) => !before.includes(id)))
  const other = await api.newAccount()
  await mails.next(other.email, /Confirm/)
  assert.equal(mails.to(refused.email).length, 0)
  const kept = JSON.stringify(await redis.hgetall(key(failed)))
  assert.match(kept, /EENVELOPE RCPT TO 550/)
  assert.ok(!kept.includes(refused.email) && !kept.includes('no such user'))
  const board = await (await fetchPatiently(`${opsUrl}/queues/api/queues?activeQueue=mail&status=failed`)).text()
  assert.match(board, /mail · not sent/)
  assert.ok(!board.includes(refused.email) && !board.includes('"sealed"'))
  assert.match(board, /EENVELOPE RCPT TO 550/)
  const [unsent] = told(200, await new Operator(opsUrl).find(refused.email)).unsentMails ?? []
  assert.deepEqual([unsent?.state, unsent?.reason], ['not_sent', 'the mail server: EENVELOPE RCPT TO 550'])
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
  assert.match(metrics, /^spillway_mail_errors_total\{code="EENVELOPE",answer="550"\} [1-9]/m)
})

test('a mail that expires before the mail server takes it is kept with its last reason; a paused queue of mails is told', async (t) => {
  const account = await api.newAccount()
  await mails.next(account.email, /Confirm/)
  const resume = await pauseMails(t)
  await until(async () =>
    /^spillway_queue_paused\{queue="mail"\} 1$/m.test(await (await fetch(`${opsUrl}/metrics`)).text()),
  )
  const outbox = openOutbox(namespace.queuePrefix)
  await outbox.add({ kind: 'reset', email: account.email, token: newMailToken() } satisfies MailRequest, -1)
  await outbox.close()
  await resume()
  const operator = new Operator(opsUrl)
  const unsent = await until(async () => {
    const [one] = told(200, await operator.find(account.email)).unsentMails ?? []
    return one?.state === 'not_sent' ? one : undefined
  })
  assert.equal(unsent.reason, 'it expired before the mail server took it')
})

test.skipIf(!canIssue())('each reason why a mail server cannot be reached has a sentence', async (t) => {
  const dir = await scratchDir(t)
  const authority = await createAuthority(dir, 'authority')
  const { certFile, keyFile } = await issue(dir, authority, { name: 'other', hosts: ['DNS:mail.example.test'] })
  const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)])
  const listen = async (server: SMTPServer) => {
    server.on('error', () => undefined).listen(0, '127.0.0.1')
    t.onTestFinished(() => new Promise((resolve) => server.close(resolve)))
    await once(server.server, 'listening')
    return Object(server.server.address()).port
  }
  const tls = await listen(new SMTPServer({ secure: true, cert, key, logger: false }))
  const plain = await listen(new SMTPServer({ disabledCommands: ['STARTTLS'], logger: false }))
  const reasonOf = async (url: string) => {
    // A process of its own, for its authorities.
    const script = `
      import { Smtp } from ${JSON.stringify(new URL('../../dist/mail/smtp.js', import.meta.url).href)}
      const smtp = new Smtp({ currentUrl: () => ${JSON.stringify(url)}, from: { name: '', address: 'no-reply@shop.test' } })
      await smtp.send({ id: 'x', to: 'ada@example.test', subject: 'x', text: 'x' }).catch(({ message }) => console.log(message))
      smtp.close()`
    const args = ['--input-type=module', '--eval', script]
    return await run(process.execPath, args, { env: { ...process.env, NODE_EXTRA_CA_CERTS: trusted } })
  }
  let trusted = ''
  assert.match(await reasonOf(`smtps://127.0.0.1:${tls}`), /unknown authority/)
  assert.match(await reasonOf(`smtps://127.0.0.1:${plain}`), /does not begin with TLS/)
  assert.match(await reasonOf(`smtp://127.0.0.1:${tls}`), /its port is only for smtps:/)
  assert.match(await reasonOf(`smtp://127.0.0.1:${await freePort()}`), /nothing listens/)
  trusted = authority.certFile
  assert.match(await reasonOf(`smtps://127.0.0.1:${tls}`), /for another name/)
})

test('a mail server is greeted by the domain of the sender', async (t) => {
  const own = await startMailServer()
  t.onTestFinished(() => own.stop())
  const { SMTP_URL: url = '' } = own.env
  const from = { name: 'Shop', address: 'no-reply@bücher.example.test' }
  const smtp = new Smtp({ currentUrl: () => url, from })
  await smtp.send({ id: randomUUID(), to: 'ada@example.test', subject: 'Hello', text: 'Hello' })
  smtp.close()
  assert.deepEqual([...own.greetings], ['xn--bcher-kva.example.test'])
})

test('a mail goes by the URL that is current, and no mail in hand is lost when that changes', async (t) => {
  const servers = [await startMailServer(), await startMailServer()]
  t.onTestFinished(async () => void (await Promise.all(servers.map((server) => server.stop()))))
  const [one = '', two = ''] = servers.map(({ env }) => env.SMTP_URL)
  let current = one
  const smtp = new Smtp({ currentUrl: () => current, from: { name: '', address: 'no-reply@shop.test' } })
  t.onTestFinished(async () => smtp.close())
  const send = () => smtp.send({ id: randomUUID(), to: 'ada@example.test', subject: 'Hello', text: 'Hello' })
  const first = send()
  current = two
  await Promise.all([first, send(), send()])
  assert.deepEqual(
    servers.map(({ received }) => received.length),
    [1, 2],
  )
})

test('a gateway that is killed while it sends: the mail is sent by another, with the same link', async (t) => {
  const other = await openSystem(t)
  const { email } = newCredentials()
  await other.database.user.create({ data: { id: randomUUID(), email, passwordHash: 'none' } })
  const killed = await other.gatewayProcess(mails.env)
  const release = holdMails()
  expect(204, await killed.api.forgotten(email))
  await until(() => mails.held() > 0)
  killed.signal('SIGKILL')
  mails.hold = undefined
  const next = await other.gatewayProcess(mails.env)
  const { token, id } = await mails.next(email, RESET)
  // The server had the first one too: a mail may come twice, and then is the same.
  release()
  assert.deepEqual(await mails.next(email, RESET, 1), mails.to(email)[0])
  assert.equal(await other.database.mailToken.count({ where: { email } }), 1)
  assert.ok(id.includes('@shop.example.test') && token !== '')
  // Neither what was killed nor what took over wrote the address or the link to its log.
  const secrets = new Secrets()
  secrets.add('address', email)
  secrets.add('token', token)
  assert.deepEqual(secrets.foundIn(killed.output() + next.output()), [])
})

test('forged, altered and replayed mails are never sent, but for a mail that is not used and not too old', async () => {
  const account = await api.newAccount()
  await mails.next(account.email, /Confirm/)
  const release = holdMails()
  expect(204, await forgotten(account.email))
  const id = await until(async () => (await queued())[0])
  const data = JSON.parse((await redis.hget(key(id), 'data')) ?? '{}')
  release()
  const { token } = await mails.next(account.email, RESET)
  await until(async () => (await queued()).length === 0)

  const forged = await outcome('forged')
  await addByHand(`${id}x`, data)
  await addByHand(id, { ...data, deadline: data.deadline + 1 })
  await until(async () => (await outcome('forged')) === forged + 2)
  for (const made of [{}, [], { sealed: 'k1.AAAA', deadline: data.deadline }, { sealed: '', deadline: 0 }])
    await addByHand(`made-${Math.random()}`, made)
  await until(async () => (await outcome('forged')) === forged + 6)
  assert.equal(mails.to(account.email).filter(({ token: sent }) => sent === token).length, 1)

  await redis.del(key(id))
  await addByHand(id, data)
  const again = await mails.next(account.email, RESET, 1)
  assert.equal(again.token, token)
  assert.equal(again.id, mails.to(account.email).find((mail) => mail.token === token)?.id)
  expect(200, await api.resetPassword(token))
  const nobody = await outcome('nobody')
  await redis.del(key(id))
  await addByHand(id, data)
  await until(async () => (await outcome('nobody')) === nobody + 1)
})

test('beyond the loopback interface nothing is sent without TLS, unless an operator says so', async (t) => {
  const host = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal)?.address
  if (host === undefined) return t.skip('this machine has no other interface')
  const plain = await startMailServer(host)
  t.onTestFinished(() => plain.stop())
  const { SMTP_URL: own = '' } = plain.env
  const from = { name: 'Shop', address: 'no-reply@shop.example.test' }
  const send = async (address: string) => {
    const smtp = new Smtp({ currentUrl: () => address, from })
    t.onTestFinished(() => smtp.close())
    await smtp.send({ id: randomUUID(), to: 'ada@example.test', subject: 'Hello', text: 'Hello' })
  }
  await assert.rejects(send(own), { name: 'MailError', isFinal: false })
  assert.equal(plain.received.length, 0)
  await send(`${own}?starttls=optional`)
  assert.equal(plain.received.length, 1)
})

test('texts are replaced by files of a folder, which are checked at the start', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-texts-'))
  t.onTestFinished(() => rm(folder, { recursive: true }))
  const file = (name: string, text: string) => writeFile(join(folder, `${name}.txt`), text)
  await file('reset', '\ufeffSubject: Neues Passwort für Ütland\r\n\r\nHier entlang:\r\n{link}\r\n')
  const own = await system.gateway({ ...mails.env, MAIL_TEXTS: folder })
  await gateway.close()
  const account = await own.api.newAccount()
  expect(204, await own.api.forgotten(account.email))
  assert.match((await mails.next(account.email, /Hier entlang/)).text, /https:\/\/app\.example\.test\/reset#[\w-]{43}/)
  for (const wrong of ['', 'Subject: \n\n{link}', 'Subject: x\n\nno link']) {
    await file('confirm', wrong)
    assert.throws(() => new MailTexts(folder), /^Error: MAIL_TEXTS: .*confirm\.txt /, wrong)
  }
  await writeFile(join(folder, 'confirm.txt'), 'Subject: für dich\n\n{link}', 'latin1')
  assert.throws(() => new MailTexts(folder), /^Error: MAIL_TEXTS: .*confirm\.txt is not UTF-8$/)
  assert.throws(() => new MailTexts(join(folder, 'none')), /MAIL_TEXTS: there is no folder/)
})

test('settings of mail are checked together at the start, and none is shown', () => {
  const config = (env: NodeJS.ProcessEnv) => readGatewayConfig({ ...system.environment, ...env })
  config(mails.env)
  config({ ...mails.env, SMTP_URL: 'smtps://user:pass@mail.example.test', MAIL_FROM: 'no-reply@example.test' })
  assert.throws(
    () => config({ SMTP_URL: 'smtp://user:secret-4711@mail.example.test' }),
    ({ message }: Error) =>
      ['MAIL_FROM', 'MAIL_CONFIRM_URL', 'MAIL_RESET_URL'].every((name) => message.includes(name)) &&
      !message.includes('4711'),
  )
  const wrong: [string, string][] = [
    ['SMTP_URL', 'http://mail.example.test'],
    ['MAIL_FROM', 'a@b.test\r\nBcc: c@d.test'],
    ['MAIL_FROM', 'Shop <a@b.test(.corp.test>'],
    ['MAIL_CONFIRM_URL', 'javascript:{token}'],
  ]
  for (const [name, value] of wrong)
    assert.throws(() => config({ ...mails.env, [name]: value }), new RegExp(`^Error: ${name} must be`), value)
  assert.throws(() => config({ LOGIN_NEEDS_CONFIRMATION: 'true' }), /LOGIN_NEEDS_CONFIRMATION needs SMTP_URL/)
})

/** A separate outbox, beside the outboxes of the gateways. */
function openOutbox(prefix: string): Outbox {
  const watch = new RedisWatch(createLogger({ service: 'gateway', level: 'silent' }))
  const queue = openQueue({ redis, prefix, name: MAIL_QUEUE, watch })
  return new Outbox(queue, parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? ''), Date.now)
}

/** No mail is sent until the returned function is called, or the test ends. */
async function pauseMails(t: TestContext): Promise<() => Promise<void>> {
  const change = async (to: 'pause' | 'resume') => {
    const { status } = await fetchPatiently(`${opsUrl}/queues/api/queues/mail/${to}`, { method: 'PUT' })
    assert.equal(status, 200)
  }
  await change('pause')
  t.onTestFinished(() => change('resume'))
  return () => change('resume')
}

/** The server acknowledges no mail until the returned function is called. */
function holdMails(): () => void {
  let release = () => {}
  mails.hold = new Promise((resolve) => {
    release = () => {
      mails.hold = undefined
      resolve()
    }
  })
  return release
}

/** Puts a job into the queue as somebody with access to Redis would. */
async function addByHand(id: string, data: unknown): Promise<void> {
  await redis.hset(key(id), {
    name: 'mail',
    data: JSON.stringify(data),
    opts: '{"attempts":1}',
    timestamp: Date.now(),
    delay: 0,
    priority: 0,
  })
  await redis.lpush(key('wait'), id)
  await redis.zadd(key('marker'), 0, '0')
}
