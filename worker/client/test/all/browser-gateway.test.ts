// The client for pages at a real gateway: through tickets, refusals, cut connections, reloads and a queue without workers.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { startProxy } from '@spillway/infra/rig/tcp-proxy'
import { describe, test } from 'vitest'
import { login, type Progress, register, resume, type SpillwayError, type Tokens } from '../../src/browser.ts'
import { newStorage } from '../browser/scripted-gateway.ts'
import { SPIKE, startSlowSpillway } from '../browser/slow-spillway.ts'

const waits = { LOGIN_WAIT_MS: '1000', TICKET_TTL_MS: '60000' }

describe('the client for pages at a gateway', { concurrent: true }, () => {
  test('in a spike of ten times the capacity everyone gets in, and sends a password again only after a refusal', async (t) => {
    const { gateway, account, passwords, sessions } = await startSlowSpillway(t, SPIKE)
    const { serviceMs, first, later, giveUpAfterMs } = SPIKE
    const credentials = await account(serviceMs)
    const options = { ...credentials, baseUrl: gateway.url, storage: null, giveUpAfterMs }
    const come = (clients: number) => Promise.all(Array.from({ length: clients }, () => login(options)))
    const early = come(first)
    await until(async () => (await passwords(first)).ticketed > 0)
    const all = [...(await come(later)), ...(await early)]
    for (const { tokenType } of all) assert.equal(tokenType, 'Bearer')
    const logins = first + later
    assert.equal(await sessions(credentials.email), logins)
    const { sent, needed, refused, ticketed } = await passwords(logins)
    assert.ok(refused > 0 && ticketed > 0, `${refused} were refused, ${ticketed} got tickets`)
    assert.equal(sent, needed, 'a password was sent where a ticket would do')
  })

  test('a reload, a cut connection, a wrong password and a registration: the ticket will do', async (t) => {
    const { spillway, gateway, account, sessions } = await startSlowSpillway(t, { workers: 0, env: waits })
    const proxy = await startProxy(gateway.url)
    t.onTestFinished(() => proxy.close())
    const baseUrl = proxy.url.replace(/\/$/, '')
    const slow = await account(1)

    // The page is gone in the middle of a held redemption; the next one has what the storage had.
    const storage = newStorage()
    const gone = new AbortController()
    const states: string[] = []
    const onProgress = ({ state, nextMs }: Progress) => states.push(nextMs === undefined ? `${state}…` : state)
    const first = login({ ...slow, baseUrl, storage, signal: gone.signal, onProgress }).catch(() => undefined)
    await until(() => states.includes('queued…'))
    const kept = newStorage([...storage.kept])
    assert.ok(!JSON.stringify([...kept.kept]).includes(slow.password))
    gone.abort()
    await first
    const again: Progress[] = []
    const resumed = resume<Tokens>({ baseUrl, storage: kept, onProgress: (progress) => again.push(progress) })
    // It has no connection for a while.
    proxy.refuse()
    await until(() => again.some(({ state }) => state === 'offline'))
    proxy.restore()
    // Not before: an answer that was on its way when the connection was cut would have used the ticket.
    await spillway.worker()
    assert.equal((await resumed)?.tokenType, 'Bearer')
    assert.equal(await sessions(slow.email), 1)

    const wrong = { ...(await account(1)), password: 'wrong' }
    await assert.rejects(login({ ...wrong, baseUrl, holdS: 0 }), { code: 'invalid_credentials', status: 401 })
    const { email } = await register({ email: 'new@example.test', password: 'a new passphrase', baseUrl, holdS: 0 })
    assert.equal(email, 'new@example.test')
  })

  test('where strangers have guessed, the challenge is solved without a click; a device that is known solves none', async (t) => {
    const env = { GUESSES_PER_ACCOUNT: '2', CHALLENGE_BITS: '8' }
    const { gateway, account, sessions } = await startSlowSpillway(t, { env })
    const credentials = await account(1)
    const baseUrl = gateway.url
    const { deviceToken } = await login({ ...credentials, baseUrl })
    // Each to its end: a guess whose ticket nobody redeems would count for nothing.
    const guess = () => login({ ...credentials, password: 'wrong', baseUrl })
    for (let n = 0; n < 2; n++) await assert.rejects(guess(), { code: 'invalid_credentials' })

    const states: string[] = []
    const onProgress = ({ state }: Progress) => states.push(state)
    assert.equal((await login({ ...credentials, baseUrl, deviceToken, onProgress })).tokenType, 'Bearer')
    assert.ok(!states.includes('solving'))
    assert.equal((await login({ ...credentials, baseUrl, onProgress })).tokenType, 'Bearer')
    assert.ok(states.includes('solving'))
    assert.equal(await sessions(credentials.email), 3)
  })

  test('while nobody hashes tickets expire, and the password in memory goes again by itself; a page that was reloaded is told', async (t) => {
    const env = { LOGIN_WAIT_MS: '0', TICKET_TTL_MS: '3000' }
    const { spillway, gateway, account } = await startSlowSpillway(t, { workers: 0, env })
    const credentials = await account(1)
    const storage = newStorage()
    const told: Progress[] = []
    const onProgress = (progress: Progress) => told.push(progress)
    const call = login({ ...credentials, baseUrl: gateway.url, storage, onProgress })
    await until(() => storage.kept.size > 0)
    const kept = newStorage([...storage.kept])
    await until(() => told.some(({ code }) => code === 'ticket_expired'))
    await assert.rejects(resume({ baseUrl: gateway.url, storage: kept }), (error: SpillwayError) => {
      assert.deepEqual([error.code, error.needsPassword], ['ticket_expired', true])
      return true
    })
    await spillway.worker()
    assert.equal((await call).tokenType, 'Bearer')
  })
})
