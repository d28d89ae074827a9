// Secrets that are rotated under load, without a restart and without a failed login.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import { query } from '@spillway/infra/services/query'
import { newSealKey, newSigningKey } from '@spillway/infra/start/secrets'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { afterAll, test } from 'vitest'
import { asIs } from '../client.ts'
import { openSystem } from '../system.ts'

/** Clients that log in again and again. */
const CLIENTS = 3
/** That a login may need where connections are cut, or the machine stands still: clients try again after Retry-After. */
const TRIES = 3

const redis = await startOwnRedis()
afterAll(() => redis.close())
const system = await openSystem()
const { databaseUrl } = system.namespace
const role = `rotated_${databaseUrl.slice(-12)}`
afterAll(async () => {
  await system.close()
  await query(databaseUrl.replace(/\/[^/]*$/, '/postgres'), `DROP ROLE ${role}`)
})
await query(databaseUrl, `CREATE ROLE ${role} LOGIN SUPERUSER PASSWORD 'old'`)
await redis.command('ACL', 'SETUSER', role, 'on', '>old', '~*', '&*', '+@all')

const withLogin = (url: string, password: string) => url.replace(/\/\/[^@]*@/, `//${role}:${password}@`)
const dir = await scratchDir({ onTestFinished: afterAll })
const files = {
  DATABASE_URL: withLogin(databaseUrl, 'old'),
  REDIS_URL: withLogin(redis.url, 'old'),
  SPILLWAY_SEAL_KEYS: newSealKey('seal-1'),
  SPILLWAY_JWT_KEYS: newSigningKey('sign-1'),
}
const put = (name: string, text: string) => writeFileSync(join(dir, name), `${text}\n`)
const env: NodeJS.ProcessEnv = { DATABASE_POOL_SIZE: '8' }
for (const [name, text] of Object.entries(files)) {
  put(name, text)
  Object.assign(env, { [name]: '', [`${name}_FILE`]: join(dir, name) })
}
const worker = await system.worker(env)
const gateway = await system.gatewayProcess(env)
const { api } = gateway

/** Has clients log in until what is done is done, and fails if a login does. */
async function underLoad(act: (everyoneLogsIn: () => Promise<void>) => Promise<void>): Promise<void> {
  const accounts = await Promise.all(Array.from({ length: CLIENTS }, () => api.newAccount()))
  const done = accounts.map(() => 0)
  const failed: string[] = []
  let isOver = false
  const clients = accounts.map(async (account, n) => {
    while (!isOver) {
      let answer = await api.login(account, asIs)
      for (let n = 1; n < TRIES && answer.body.code === 'unavailable'; n += 1) {
        await sleep(Number(answer.headers.get('retry-after')) * 1_000)
        answer = await api.login(account, asIs)
      }
      if (answer.status === 202) answer = await api.redeem(answer.body.ticket)
      if (answer.body.code === 'busy') answer = await api.login(account)
      const { status, body } = answer
      if (status !== 200) failed.push(`${status} ${body.code}`)
      done[n] = (done[n] ?? 0) + 1
    }
  })
  /** Each client has begun and ended a login after this was called. */
  const everyoneLogsIn = async () => {
    const before = [...done]
    await until(() => done.every((count, n) => count >= (before[n] ?? 0) + 2))
  }
  try {
    await everyoneLogsIn()
    await act(everyoneLogsIn)
    await everyoneLogsIn()
  } finally {
    isOver = true
    await Promise.all(clients)
  }
  assert.deepEqual(failed, [])
}

test("the password of PostgreSQL's role is rotated, and every connection is opened anew", () =>
  underLoad(async (everyoneLogsIn) => {
    const connections = async () => {
      const rows = await query(databaseUrl, 'SELECT pid FROM pg_stat_activity WHERE usename = $1', [role])
      return rows.map(({ pid }) => Number(pid))
    }
    const before = await connections()
    put('DATABASE_URL', withLogin(databaseUrl, 'new'))
    await query(databaseUrl, `ALTER ROLE ${role} PASSWORD 'new'`)
    for (const pid of before) {
      await query(databaseUrl, 'SELECT pg_terminate_backend($1)', [pid])
      await until(async () => !(await connections()).includes(pid))
      await everyoneLogsIn()
    }
    assert.ok((await connections()).length > 0)
  }))

test("the password of Redis's user is rotated, and every connection is opened anew", () =>
  underLoad(async () => {
    const connections = async () => {
      const list = String(await redis.command('CLIENT', 'LIST'))
      return list.split('\n').flatMap((line) => (line.includes(` user=${role} `) ? [/^id=\d+/.exec(line)?.[0]] : []))
    }
    const before = await connections()
    assert.ok(before.length >= 5)
    await redis.command('ACL', 'SETUSER', role, '>new')
    put('REDIS_URL', withLogin(redis.url, 'new'))
    await redis.command('ACL', 'SETUSER', role, '<old')
    for (const id of before) await redis.command('CLIENT', 'KILL', 'ID', String(id).slice('id='.length))
    await until(async () => {
      const now = await connections()
      return now.length === before.length && !now.some((id) => before.includes(id))
    })
    await until(async () => (await fetch(`${gateway.url}/readyz`)).ok)
  }))

test('seal keys and signing keys are read again on SIGHUP, and a file that cannot be read changes nothing', () =>
  underLoad(async (everyoneLogsIn) => {
    /** The ids of the keys that a process has, the first one's with a star. */
    const keysOf = async (opsUrl: string, setting: string) => {
      const page = await (await fetch(`${opsUrl}/metrics`)).text()
      const series = page.matchAll(
        new RegExp(`^spillway_key_info\\{setting="${setting}",kid="([\\w-]+)",first="(\\w+)"\\} 1$`, 'gm'),
      )
      return [...series].map(([, kid, first]) => (first === 'true' ? `*${kid}` : kid)).join()
    }
    const hangUp = () => {
      for (const process of [gateway, worker]) process.signal('SIGHUP')
    }
    const rotate = async (seal: string[], sign: string[]) => {
      put('SPILLWAY_SEAL_KEYS', seal.join())
      put('SPILLWAY_JWT_KEYS', sign.join())
      hangUp()
      const kids = (keys: string[]) => `*${keys.map((key) => key.split(':')[0]).join()}`
      await until(async () => (await keysOf(gateway.opsUrl, 'SPILLWAY_SEAL_KEYS')) === kids(seal))
      await until(async () => (await keysOf(gateway.opsUrl, 'SPILLWAY_JWT_KEYS')) === kids(sign))
      await until(async () => (await keysOf(worker.opsUrl, 'SPILLWAY_SEAL_KEYS')) === kids(seal))
      await everyoneLogsIn()
    }
    const { accessToken: before, refreshToken } = await api.signedIn()
    const [oldSeal, newSeal] = [files.SPILLWAY_SEAL_KEYS, newSealKey('seal-2')]
    const [oldSign, newSign] = [files.SPILLWAY_JWT_KEYS, newSigningKey('sign-2', 'EdDSA')]
    await rotate([oldSeal, newSeal], [oldSign, newSign])
    await rotate([newSeal, oldSeal], [newSign, oldSign])
    const jwks: { keys: { kid: string }[] } = JSON.parse(
      await (await fetch(`${gateway.url}/.well-known/jwks.json`)).text(),
    )
    assert.deepEqual(
      jwks.keys.map(({ kid }) => kid),
      ['sign-2', 'sign-1'],
    )
    assert.equal((await api.me(before)).status, 200)
    assert.equal((await api.refresh(refreshToken)).status, 200)
    const { accessToken: after } = await api.signedIn()
    assert.match(Buffer.from(after.split('.')[0] ?? '', 'base64url').toString(), /"kid":"sign-2"/)
    await rotate([newSeal], [newSign])
    assert.equal((await api.me(before)).status, 401)
    assert.equal((await api.me(after)).status, 200)
    for (const process of [gateway, worker]) {
      const line = await process.waitForLog(
        ({ msg, dropped }) => msg === 'keys read again' && String(dropped) === 'seal-1',
      )
      assert.deepEqual(line.kids, ['seal-2'])
    }

    put('SPILLWAY_SEAL_KEYS', '')
    hangUp()
    for (const process of [gateway, worker]) {
      const line = await process.waitForLog(({ msg }) => msg === 'keys not read again: the ones before stay in use')
      assert.deepEqual([line.reason, line.kids], ['SPILLWAY_SEAL_KEYS_FILE names an empty file', ['seal-2']])
      for (const text of Object.values(files)) assert.ok(!process.output().includes(text.slice(-20)))
    }
  }))
