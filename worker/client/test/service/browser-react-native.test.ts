// The client for pages where React Native runs it: an AbortController without reasons, a URL that ends every path with a slash, no Web
// Crypto, no TextEncoder, no location, and a storage whose calls are promises.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/infra/processes/until'
import { type TestContext, test, vi } from 'vitest'
import { login, resume, SpillwayError } from '../../src/browser.ts'
import { newStorage, type Scripted, startScripted } from '../browser/scripted-gateway.ts'

const credentials = { email: 'ada@example.test', password: 'correct horse' }
const tokens = { accessToken: 'a', refreshToken: 'r', tokenType: 'Bearer', expiresIn: 900 }
const answered: Scripted = { status: 200, body: tokens }
const ticket: Scripted = { status: 202, body: { ticket: '1' }, headers: { 'retry-after': '1' } }

/** As the package abort-controller 3, which React Native has. */
class OldAbortController {
  readonly signal = Object.assign(new EventTarget(), { aborted: false })

  abort(): void {
    this.signal.aborted = true
    this.signal.dispatchEvent(new Event('abort'))
  }
}

/** As React Native's own, which resolves nothing. */
class OldUrl {
  readonly href: string

  constructor(url: string, base?: string) {
    const whole = base === undefined ? url : base + url
    this.href = whole.endsWith('/') ? whole : `${whole}/`
  }
}

/** As React Native's, by what it has of it. Node's own would use the other globals here. */
function oldFetch(url: string, { method, headers, body, signal }: RequestInit): Promise<object> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: Object(headers) }, (response) => {
      const get = (name: string) => response.headers[name] ?? null
      resolve({ status: response.statusCode, headers: { get }, text: () => text(response) })
    })
    sent.on('error', reject)
    signal?.addEventListener('abort', () => sent.destroy(new Error('Aborted')))
    sent.end(body)
  })
}

/** Until the test has ended. */
function asInReactNative(t: TestContext): void {
  t.onTestFinished(() => void vi.unstubAllGlobals())
  for (const [name, value] of Object.entries({
    ...{ AbortController: OldAbortController, URL: OldUrl, fetch: oldFetch },
    ...{ crypto: undefined, TextEncoder: undefined, location: undefined, sessionStorage: undefined },
  }))
    vi.stubGlobal(name, value)
}

/** Each call takes a moment. */
function newAsyncStorage(entries: readonly (readonly [string, string])[] = []) {
  const { kept, getItem, setItem, removeItem } = newStorage(entries)
  return {
    kept,
    getItem: (key: string) => sleep(5).then(() => getItem(key)),
    setItem: (key: string, value: string) => sleep(20).then(() => setItem(key, value)),
    removeItem: (key: string) => sleep(5).then(() => removeItem(key)),
  }
}

test('a challenge is solved without Web Crypto, and a slow storage keeps the ticket until the answer', async (t) => {
  const challenge = { kind: 'proof_of_work', token: 'id.1790000000.12.signature', bits: 12 }
  const challenged: Scripted = { status: 429, body: { code: 'challenge_required', challenge } }
  const { baseUrl, seen } = await startScripted(t, challenged, ticket, answered)
  asInReactNative(t)
  const storage = newAsyncStorage()
  const call = login({ ...credentials, baseUrl, storage })
  const copy = newAsyncStorage(await until(() => (storage.kept.size > 0 ? [...storage.kept] : undefined)))
  assert.deepEqual(await call, tokens)
  const solution = String(seen[1]?.solution)
  assert.ok(solution.startsWith(`${challenge.token}.`))
  assert.ok(createHash('sha256').update(solution).digest().readUInt32BE() < 2 ** (32 - challenge.bits))
  assert.deepEqual(
    seen.map(({ path }) => path),
    ['/v1/login', '/v1/login', '/v1/tickets/redeem'],
  )
  await until(() => storage.kept.size === 0, { what: 'a storage without the ticket' })
  assert.deepEqual(await resume({ baseUrl, storage: copy }), tokens)
  assert.equal(await resume({ baseUrl, storage: newAsyncStorage() }), undefined)
})

test('a storage whose promises are rejected does not stop a login', async (t) => {
  const { baseUrl } = await startScripted(t, ticket, answered)
  asInReactNative(t)
  const fails = () => Promise.reject(new Error('no space left'))
  const storage = { getItem: fails, setItem: fails, removeItem: fails }
  assert.equal(await resume({ baseUrl, storage }), undefined)
  assert.deepEqual(await login({ ...credentials, baseUrl, storage }), tokens)
})

const unsolvable = { kind: 'proof_of_work', token: 'id', bits: 32 }

test.for<[string, Scripted]>([
  ['a held request', 'held'],
  ['a pause', ticket],
  ['a challenge', { status: 429, body: { code: 'challenge_required', challenge: unsolvable } }],
])('an abort ends %s as an AbortError, and so does the time as gave_up', async ([, answer], t) => {
  const { baseUrl, seen } = await startScripted(t, answer)
  asInReactNative(t)
  const aborter = new AbortController()
  const call = login({ ...credentials, baseUrl, storage: null, signal: aborter.signal })
  await until(() => seen.length === 1)
  aborter.abort()
  await assert.rejects(call, { name: 'AbortError' })
  await assert.rejects(login({ ...credentials, baseUrl, signal: aborter.signal }), { name: 'AbortError' })
  assert.equal(seen.length, 1)
  const inVain = login({ ...credentials, baseUrl, storage: null, giveUpAfterMs: 300 })
  await assert.rejects(inVain, (error) => error instanceof SpillwayError && error.code === 'gave_up')
})
