// The client for pages and whatever may come of its requests, on a simulated clock: lost connections, tickets that have ended, servers that are none of
// ours, tabs.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test, vi } from 'vitest'
import { ask, login, logout, type Progress, refresh, resume, SpillwayError } from '../../src/follow.ts'

const baseUrl = 'https://auth.example.test'
const credentials = { email: 'ada@example.test', password: 'correct horse' }
const tokens = { accessToken: 'a', tokenType: 'Bearer', expiresIn: 900 }
const key = `${baseUrl}/v1/login`

/** `lost` ends the connection; `held` never answers; a function answers by path. */
type Scripted = 'lost' | 'held' | Response | ((path: string) => Response)
interface Seen {
  path: string
  body: unknown
  atMs: number
  credentials: unknown
  headers: Record<string, string>
}

const answered = () => Response.json(tokens)
const ticket = (name: string, more: object = {}) =>
  Response.json({ ticket: name, retryAfter: 1, ...more }, { status: 202, headers: { 'retry-after': '1' } })
const problem = (status: number, code: string, headers = {}) =>
  Response.json({ status, code, detail: `What ${code} is`, requestId: 'r-1' }, { status, headers })

let kept: Map<string, string>
let seen: Seen[]

beforeEach(() => {
  vi.useFakeTimers()
  kept = new Map()
  seen = []
  vi.stubGlobal('sessionStorage', {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  })
  vi.stubGlobal('navigator', {})
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

function script(...answers: Scripted[]): void {
  vi.stubGlobal('fetch', (url: string, { body, signal, headers, credentials }: RequestInit) => {
    const answer = answers[Math.min(seen.length, answers.length - 1)] ?? 'lost'
    const path = url.replace(`${baseUrl}/v1/`, '')
    seen.push({ path, body: body && JSON.parse(String(body)), atMs: Date.now(), credentials, headers: Object(headers) })
    if (answer === 'lost') return Promise.reject(new TypeError('Failed to fetch'))
    if (typeof answer === 'function') return Promise.resolve(answer(path))
    if (answer !== 'held') return Promise.resolve(answer.clone())
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
  })
}

const paths = () => seen.map(({ path }) => path)

/** What becomes of a call, while time passes. */
async function ended<T>(call: Promise<T>): Promise<T> {
  let isOver = false
  const over = () => {
    isOver = true
  }
  call.then(over, over)
  for (let n = 0; !isOver && n < 10_000; n++) await vi.advanceTimersByTimeAsync(100)
  return await call
}

async function errorOf(call: Promise<unknown>): Promise<SpillwayError> {
  const error = await ended(call).then(
    () => assert.fail('it was answered'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof SpillwayError, String(error))
  return error
}

test('a login whose answer is lost, or is no gateway’s, is sent again', async () => {
  script('lost', new Response('<p>A portal'), answered())
  const states: string[] = []
  assert.deepEqual(
    await ended(login({ ...credentials, baseUrl, onProgress: ({ state }) => states.push(state) })),
    tokens,
  )
  assert.deepEqual(paths(), ['login', 'login', 'login'])
  assert.deepEqual(states, ['sending', 'offline', 'sending', 'offline', 'sending'])
})

test('with a ticket, lost answers, refusals and failures of the service cost no second password', async () => {
  const failures = [problem(503, 'busy'), problem(500, 'internal_error'), problem(429, 'too_many_requests')]
  script(ticket('1'), 'lost', 'held', ...failures, ticket('2'), answered())
  assert.deepEqual(await ended(login({ ...credentials, baseUrl })), tokens)
  const redeemed = seen.slice(1)
  assert.ok(redeemed.every(({ path }) => path === 'tickets/redeem'))
  assert.deepEqual(
    redeemed.map(({ body }) => body),
    [1, 1, 1, 1, 1, 1, 2].map((name) => ({ ticket: String(name) })),
  )
})

for (const code of ['ticket_used', 'ticket_expired', 'hash_replaced', 'invalid_ticket']) {
  test(`${code}: the login starts anew by itself; after a reload the page is told to ask for the password`, async () => {
    script(ticket('1'), 'lost', problem(410, code), answered())
    assert.deepEqual(await ended(login({ ...credentials, baseUrl })), tokens)
    assert.deepEqual(paths(), ['login', 'tickets/redeem', 'tickets/redeem', 'login'])
    assert.deepEqual(seen.at(-1)?.body, credentials)

    script(problem(410, code))
    kept.set(key, JSON.stringify({ ticket: '1', redeemAt: Date.now() }))
    const error = await errorOf(resume({ baseUrl }))
    assert.deepEqual([error.code, error.needsPassword, error.message], [code, true, `What ${code} is`])
    assert.deepEqual([...kept], [])
  })
}

test('the ticket is kept and the password is not; a reload goes on with it, and at the end nothing is kept', async () => {
  script(ticket('1', { position: 7, eta: 3 }), answered())
  const call = login({ ...credentials, baseUrl })
  await vi.advanceTimersByTimeAsync(500)
  const text = kept.get(key) ?? ''
  assert.ok(!text.includes(credentials.password) && text.includes('"ticket":"1"'), text)
  await ended(call)
  assert.deepEqual([...kept], [])

  kept.set(key, text)
  const told: Progress[] = []
  assert.deepEqual(await ended(resume({ baseUrl, onProgress: (progress) => told.push(progress) })), tokens)
  assert.deepEqual([told[0]?.state, told[0]?.position], ['queued', 7])
  assert.deepEqual([...kept], [])
})

test('without a ticket, with one of another gateway, or with rubbish there is nothing to resume', async () => {
  script(answered())
  assert.equal(await resume({ baseUrl }), undefined)
  kept.set('https://other.example.test/v1/login', '{"ticket":"1"}')
  assert.equal(await resume({ baseUrl }), undefined)
  for (const rubbish of ['rubbish', '{}', 'null']) {
    kept.set(key, rubbish)
    assert.equal(await resume({ baseUrl }), undefined)
  }
  assert.equal(seen.length, 0)
})

test('far from its turn a ticket is not redeemed: the line is read until it is near, and told', async () => {
  const line = (serving: number) => Response.json({ serving, rate: 10 })
  script(ticket('1', { number: 1_000, eta: 100, position: 990 }), line(870), line(950), answered())
  const told: (number | undefined)[][] = []
  const onProgress = ({ position, etaS }: Progress) => told.push([position, etaS])
  const call = login({ ...credentials, baseUrl, onProgress })
  await vi.advanceTimersByTimeAsync(3_000)
  assert.equal(JSON.parse(kept.get(key) ?? '').position, 130)
  assert.deepEqual(await ended(call), tokens)
  assert.deepEqual(paths(), ['login', 'line', 'line', 'tickets/redeem'])
  assert.deepEqual(told.slice(1, 3), [
    [990, 100],
    [130, 13],
  ])
  assert.ok(!('prefer' in Object(seen[1]?.headers)))
})

test('a paused line is told, and its ticket is redeemed once a minute', async () => {
  const line = { serving: 1, rate: 10, paused: true }
  const far = { number: 1_000, paused: true }
  script((path) => (path === 'line' ? Response.json(line) : ticket('1', far)))
  const states = new Set<string>()
  const aborter = new AbortController()
  const call = login({ ...credentials, baseUrl, signal: aborter.signal, onProgress: ({ state }) => states.add(state) })
  call.catch(() => undefined)
  await vi.advanceTimersByTimeAsync(75_000)
  aborter.abort(new Error('the user went back'))
  await assert.rejects(call, { message: 'the user went back' })
  assert.deepEqual([...states], ['sending', 'paused'])
  assert.equal(paths().filter((path) => path === 'tickets/redeem').length, 1)
})

test('where the line is not told, a far ticket is redeemed as its Retry-After asks', async () => {
  for (const nothing of ['lost', Response.json({}, { status: 404 }), Response.json({})] satisfies Scripted[]) {
    seen = []
    script(ticket('1', { number: 1_000, eta: 100 }), nothing, answered())
    assert.deepEqual(await ended(login({ ...credentials, baseUrl })), tokens)
    assert.deepEqual(paths(), ['login', 'line', 'tickets/redeem'])
  }
})

test('a server that says "at once" is asked once a second at most, and no client comes before it was asked to', async () => {
  script(
    problem(503, 'busy', { 'retry-after': '0' }),
    ticket('1', { retryAfter: 0 }),
    problem(503, 'busy', { 'retry-after': '7' }),
    answered(),
  )
  await ended(login({ ...credentials, baseUrl }))
  const pauses = seen.slice(1).map(({ atMs }, n) => atMs - (seen[n]?.atMs ?? 0))
  assert.ok(
    pauses.every((ms) => ms >= 1_000) && (pauses[2] ?? 0) >= 7_000 && (pauses[2] ?? 0) <= 10_500,
    String(pauses),
  )
})

test('storage that is forbidden stops no login', async () => {
  vi.stubGlobal('sessionStorage', undefined)
  script(ticket('1'), answered())
  assert.equal(await resume({ baseUrl }), undefined)
  assert.deepEqual(await ended(login({ ...credentials, baseUrl })), tokens)
})

test('an abort ends a held request, a pause, and what has not begun, with its reason; the ticket is forgotten', async () => {
  for (const answers of [['held'], [ticket('1')], [ticket('1'), 'held']] satisfies Scripted[][]) {
    seen = []
    script(...answers)
    const aborter = new AbortController()
    const call = login({ ...credentials, baseUrl, signal: aborter.signal })
    call.catch(() => undefined)
    await vi.advanceTimersByTimeAsync(answers.length * 600)
    aborter.abort(new Error('the user went back'))
    await assert.rejects(call, { message: 'the user went back' })
    assert.deepEqual([...kept], [])
  }
  seen = []
  await assert.rejects(login({ ...credentials, baseUrl, signal: AbortSignal.abort(new Error('before')) }), {
    message: 'before',
  })
  assert.equal(seen.length, 0)
})

test('a refusal for good ends the call with its code and problem, and a password follows no redirection', async () => {
  script(ticket('1'), problem(401, 'invalid_credentials'))
  const { code, needsPassword, problem: said } = await errorOf(login({ ...credentials, baseUrl }))
  assert.deepEqual([code, needsPassword, said.requestId], ['invalid_credentials', false, 'r-1'])
  script(Response.json({}, { status: 404 }))
  assert.equal((await errorOf(login({ ...credentials, baseUrl }))).code, 'unexpected_answer')
})

test('any other call waits in the same way, behind a path too, with its headers', async () => {
  script(ticket('1'), new Response(null, { status: 204 }))
  const body = { currentPassword: 'old', newPassword: 'new' }
  const headers = { authorization: 'Bearer a' }
  await ended(ask('/v1/me/password', { method: 'PUT', body, headers, baseUrl: `${baseUrl}/auth/` }))
  assert.deepEqual(paths(), [`${baseUrl}/auth/v1/me/password`, `${baseUrl}/auth/v1/tickets/redeem`])
  assert.deepEqual([seen[0]?.body, seen[0]?.headers.authorization], [body, 'Bearer a'])
})

// Sessions.

test('a session in a cookie is refreshed with cookies, and is over only when the gateway says so', async () => {
  script(problem(503, 'unavailable', { 'retry-after': '1' }), answered())
  assert.deepEqual(await ended(refresh({ baseUrl })), tokens)
  assert.deepEqual([seen[0]?.credentials, seen[0]?.body], ['include', undefined])
  script(problem(401, 'invalid_refresh_token'))
  assert.equal(await ended(refresh({ baseUrl, refreshToken: 'r' })), undefined)
  assert.deepEqual(seen.at(-1)?.body, { refreshToken: 'r' })
  script('lost')
  assert.equal((await errorOf(refresh({ baseUrl }))).code, 'gave_up')
  assert.equal((await errorOf(logout({ baseUrl }))).code, 'gave_up')
})

/** Web Locks of one origin, as browsers have them. */
function stubLocks() {
  const held: { by: Promise<unknown> } = { by: Promise.resolve() }
  const request = async (_: string, { signal }: { signal: AbortSignal }, work: () => Promise<unknown>) => {
    const before = held.by
    const turn = new Promise((resolve, reject) => {
      before.then(resolve, resolve)
      signal.addEventListener('abort', () => reject(signal.reason))
    })
    const done = turn.then(work)
    held.by = done.then(
      () => undefined,
      () => before,
    )
    return await done
  }
  vi.stubGlobal('navigator', { locks: { request } })
  return held
}

test('tabs refresh one after the other', async () => {
  stubLocks()
  let underway = 0
  let most = 0
  vi.stubGlobal('fetch', async () => {
    most = Math.max(most, ++underway)
    await new Promise((resolve) => setTimeout(resolve, 300))
    underway -= 1
    return answered()
  })
  const all = Promise.all(Array.from({ length: 5 }, () => refresh({ baseUrl })))
  assert.deepEqual(await ended(all), Array(5).fill(tokens))
  assert.equal(most, 1)
})

test('a lock that another tab never gives back, or that is forbidden, ends no session', async () => {
  const locks = stubLocks()
  locks.by = new Promise(() => undefined)
  script(answered())
  const beganMs = Date.now()
  assert.deepEqual(await ended(refresh({ baseUrl })), tokens)
  assert.ok(Date.now() - beganMs < 10_000, 'later than the grace of the gateway')
  const forbidden = () => Promise.reject(new Error('SecurityError'))
  vi.stubGlobal('navigator', { locks: { request: forbidden } })
  assert.deepEqual(await ended(refresh({ baseUrl })), tokens)
  vi.stubGlobal('navigator', undefined)
  assert.deepEqual(await ended(refresh({ baseUrl })), tokens)
})

test('an abort ends the wait for a lock', async () => {
  stubLocks().by = new Promise(() => undefined)
  script(answered())
  const aborter = new AbortController()
  const call = refresh({ baseUrl, signal: aborter.signal })
  call.catch(() => undefined)
  await vi.advanceTimersByTimeAsync(1_000)
  aborter.abort(new Error('the page was left'))
  await assert.rejects(call, { message: 'the page was left' })
  assert.equal(seen.length, 0)
})
