// The client for pages and whatever may come of its requests: lost connections, lost tickets, servers that are none of ours.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { describe, test } from 'vitest'
import { ask, type Challenge, login, type Progress, resume, SpillwayError } from '../../src/browser.ts'
import { newStorage, type Scripted, startScripted } from '../browser/scripted-gateway.ts'

const credentials = { email: 'ada@example.test', password: 'correct horse' }
const tokens = { accessToken: 'a', refreshToken: 'r', tokenType: 'Bearer', expiresIn: 900 }
const answered: Scripted = { status: 200, body: tokens }
const ticket = (name: string, more: object = {}): Scripted => ({
  status: 202,
  body: { ticket: name, retryAfter: 1, ...more },
  headers: { 'retry-after': '1' },
})
const problem = (status: number, code: string, headers = {}): Scripted => ({
  status,
  body: { type: 'about:blank', status, code, detail: `What ${code} is` },
  headers,
})
/** A timer may fire a millisecond early. */
const SECOND_MS = 995

/** The error of a call, which must fail. */
async function errorOf(call: Promise<unknown>): Promise<SpillwayError> {
  const error = await call.then(
    () => assert.fail('it was answered'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof SpillwayError, String(error))
  return error
}

describe('the client for pages', { concurrent: true }, () => {
  test('a login whose answer is lost is sent again', async (t) => {
    const { baseUrl, paths } = await startScripted(t, 'lost', 'lost', answered)
    const states: string[] = []
    const onProgress = ({ state }: Progress) => states.push(state)
    assert.deepEqual(await login({ ...credentials, baseUrl, onProgress }), tokens)
    assert.deepEqual(paths(), ['login', 'login', 'login'])
    assert.deepEqual(states, ['sending', 'offline', 'sending', 'offline', 'sending'])
  })

  test('the challenge of another service is solved by the page, once for each; without that the call ends', async (t) => {
    const challenged: Scripted = {
      status: 429,
      body: { code: 'challenge_required', challenge: { kind: 'outside', siteKey: 'site' } },
    }
    const { baseUrl, seen } = await startScripted(t, challenged, challenged, ticket('1'), answered)
    const solved: string[] = []
    const solveChallenge = async ({ siteKey }: Challenge) => `${siteKey}-${solved.push('solved')}`
    assert.deepEqual(await login({ ...credentials, baseUrl, solveChallenge }), tokens)
    assert.deepEqual(
      seen.map(({ path, solution }) => [path, solution]),
      [
        ['/v1/login', undefined],
        ['/v1/login', 'site-1'],
        ['/v1/login', 'site-2'],
        ['/v1/tickets/redeem', undefined],
      ],
    )
    const unsolved = await startScripted(t, challenged, answered)
    const error = await errorOf(login({ ...credentials, baseUrl: unsolved.baseUrl }))
    assert.equal(error.code, 'challenge_required')
    assert.equal(unsolved.seen.length, 1)
  })

  test('with a ticket, lost answers, refusals and failures of the service cost no second password', async (t) => {
    const failures = [problem(503, 'busy'), problem(500, 'internal_error'), problem(429, 'too_many_requests')]
    const { baseUrl, seen, paths } = await startScripted(t, ticket('1'), 'lost', ...failures, ticket('2'), answered)
    assert.deepEqual(await login({ ...credentials, baseUrl }), tokens)
    assert.deepEqual(paths(), ['login', ...Array.from({ length: 6 }, () => 'tickets/redeem')])
    const bodies = seen.slice(1).map(({ body }) => body)
    assert.deepEqual(
      bodies,
      [1, 1, 1, 1, 1, 2].map((name) => ({ ticket: String(name) })),
    )
  })

  for (const [status, code] of [
    [409, 'ticket_used'],
    [410, 'ticket_expired'],
    [410, 'ticket_lost'],
    [410, 'hash_replaced'],
    [400, 'invalid_ticket'],
  ] as const) {
    test(`${code}, also after a lost answer: the login starts anew by itself`, async (t) => {
      const { baseUrl, seen, paths } = await startScripted(t, ticket('1'), 'lost', problem(status, code), answered)
      assert.deepEqual(await login({ ...credentials, baseUrl }), tokens)
      assert.deepEqual(paths(), ['login', 'tickets/redeem', 'tickets/redeem', 'login'])
      assert.deepEqual(seen.at(-1)?.body, credentials)
    })

    test(`${code} after a reload: the page is told to ask for the password, and the ticket is forgotten`, async (t) => {
      const { baseUrl, paths } = await startScripted(t, problem(status, code))
      const kept = JSON.stringify({ ticket: '1', redeemAt: Date.now() })
      const storage = newStorage([[`spillway ${baseUrl}/v1/login`, kept]])
      const error = await errorOf(resume({ baseUrl, storage }))
      assert.deepEqual([error.code, error.status, error.needsPassword], [code, status, true])
      assert.equal(error.message, `What ${code} is`)
      assert.deepEqual([...storage.kept], [])
      assert.deepEqual(paths(), ['tickets/redeem'])
    })
  }

  test('the ticket is kept and the password is not; at the end nothing is', async (t) => {
    const { baseUrl, paths } = await startScripted(t, ticket('1', { position: 7, eta: 3 }), answered)
    const storage = newStorage()
    const call = login({ ...credentials, baseUrl, storage })
    const text = await until(() => [...storage.kept.values()][0])
    assert.ok(!text.includes(credentials.password) && text.includes('"ticket":"1"'), text)
    const copy = newStorage([...storage.kept])
    await call
    assert.deepEqual([...storage.kept], [])
    // What a reload finds: it waits until the ticket is due, and tells what is known.
    const told: Progress[] = []
    assert.deepEqual(await resume({ baseUrl, storage: copy, onProgress: (progress) => told.push(progress) }), tokens)
    assert.deepEqual([told[0]?.state, told[0]?.position, typeof told[0]?.etaS], ['queued', 7, 'number'])
    assert.deepEqual([...copy.kept], [])
    assert.deepEqual(paths(), ['login', 'tickets/redeem', 'tickets/redeem'])
  })

  test('far from its turn a ticket is not redeemed: the line is read until it is near, and told; a reload finds the same', async (t) => {
    const line = (serving: number): Scripted => ({
      status: 200,
      body: { serving: { L: serving, other: 9_000 }, rate: { L: 10, other: 1 }, until: '' },
    })
    const far = ticket('1', { number: 1_000, line: 'L', eta: 100, position: 990 })
    const { baseUrl, seen, paths } = await startScripted(t, far, line(870), line(950), answered)
    const storage = newStorage()
    const told: Progress[] = []
    const call = login({ ...credentials, baseUrl, storage, onProgress: (progress) => told.push(progress) })
    await until(() => seen.length === 2)
    const kept = await until(() => [...storage.kept.values()].find((text) => text.includes('"position":130')))
    assert.equal(JSON.parse(kept).number, 1_000)
    assert.deepEqual(await call, tokens)
    assert.deepEqual(paths(), ['login', 'line', 'line', 'tickets/redeem'])
    const queued = told.filter(({ state }) => state === 'queued').map(({ position, etaS }) => [position, etaS])
    assert.deepEqual(queued.slice(0, 2), [
      [990, 100],
      [130, 13],
    ])
    assert.equal(seen[1]?.prefer, 'undefined')
  })

  test('where the line is not told, or by another gateway, a far ticket is redeemed as its Retry-After asks', async (t) => {
    const far = ticket('1', { number: 1_000, line: 'L', eta: 100 })
    for (const nothing of [
      'lost',
      { status: 404 },
      { status: 200, text: 'a page' },
      { status: 200, body: {} },
    ] as const) {
      const { baseUrl, paths } = await startScripted(t, far, nothing, answered)
      assert.deepEqual(await login({ ...credentials, baseUrl }), tokens)
      assert.deepEqual(paths(), ['login', 'line', 'tickets/redeem'])
    }
  })

  test('without a ticket, with one of another gateway, or with rubbish there is nothing to resume', async (t) => {
    const { baseUrl, seen } = await startScripted(t, answered)
    const key = `spillway ${baseUrl}/v1/login`
    const others = [[], [['spillway http://127.0.0.1:1/v1/login', '{"ticket":"1"}']], [[key, 'rubbish']], [[key, '{}']]]
    for (const entries of others) {
      const storage = newStorage(entries.map(([key = '', value = '']) => [key, value]))
      assert.equal(await resume({ baseUrl, storage }), undefined)
    }
    assert.equal(seen.length, 0)
  })

  test('a storage that fails does not stop a login', async (t) => {
    const { baseUrl } = await startScripted(t, ticket('1'), answered)
    const forbidden = () => {
      throw new Error('SecurityError')
    }
    const storage = { getItem: forbidden, setItem: forbidden, removeItem: forbidden }
    assert.equal(await resume({ baseUrl, storage }), undefined)
    assert.deepEqual(await login({ ...credentials, baseUrl, storage }), tokens)
  })

  test('a server that says "at once" again and again is asked once a second at most', async (t) => {
    const now = { 'retry-after': '0' }
    const script = [problem(503, 'busy', now), ticket('1', { retryAfter: 0 }), problem(429, 'too_many_requests', now)]
    const { baseUrl, seen } = await startScripted(t, ...script, answered)
    await login({ ...credentials, baseUrl })
    for (const [index, { atMs }] of seen.entries()) {
      const before = seen[index - 1]
      assert.ok(before === undefined || atMs - before.atMs >= SECOND_MS, `request ${index}`)
    }
  })

  test('position and expected time are told when the gateway tells them, and nothing else is made up', async (t) => {
    const { baseUrl } = await startScripted(t, ticket('1'), ticket('1', { position: 12, eta: 40 }), answered)
    const told: (number | undefined)[][] = []
    const onProgress = ({ state, attempt, position, etaS, nextMs }: Progress) => {
      if (state === 'queued' && nextMs !== undefined) told.push([attempt, position, etaS])
    }
    await login({ ...credentials, baseUrl, onProgress })
    assert.deepEqual(told, [
      [1, undefined, undefined],
      [2, 12, 40],
    ])
  })

  test('a Retry-After beyond the time that the caller gives ends the call at once, and is passed on', async (t) => {
    const { baseUrl, seen } = await startScripted(t, problem(503, 'busy', { 'retry-after': '3600' }))
    const error = await errorOf(login({ ...credentials, baseUrl, giveUpAfterMs: 60_000 }))
    assert.deepEqual([error.code, error.status, error.retryAfterMs], ['gave_up', 503, 3_600_000])
    assert.equal(seen.length, 1)
  })

  test('a Retry-After may be a date', async (t) => {
    const date = new Date(Date.now() + 3_600_000).toUTCString()
    const { baseUrl } = await startScripted(t, problem(503, 'busy', { 'retry-after': date }))
    const { retryAfterMs } = await errorOf(login({ ...credentials, baseUrl, giveUpAfterMs: 60_000 }))
    assert.ok(Math.abs((retryAfterMs ?? 0) - 3_600_000) < 60_000, String(retryAfterMs))
  })

  test('the call is given up in time, whether a request is held or a pause is long', async (t) => {
    const held = await startScripted(t, 'held')
    assert.equal((await errorOf(login({ ...credentials, ...held, giveUpAfterMs: 200 }))).code, 'gave_up')
    const offline = await startScripted(t, 'lost')
    assert.equal((await errorOf(login({ ...credentials, ...offline, giveUpAfterMs: 3_000 }))).code, 'gave_up')
    const forever = await startScripted(t, answered)
    assert.deepEqual(await login({ ...credentials, ...forever, giveUpAfterMs: Number.POSITIVE_INFINITY }), tokens)
  })

  test('an abort ends a held request, a pause, and what has not begun, with its reason; the ticket is forgotten', async (t) => {
    for (const script of [['held'], [ticket('1')], [ticket('1'), 'held']] satisfies Scripted[][]) {
      const { baseUrl, seen } = await startScripted(t, ...script)
      const storage = newStorage()
      const aborter = new AbortController()
      const call = login({ ...credentials, baseUrl, storage, signal: aborter.signal })
      await until(() => seen.length === script.length && (script[0] === 'held' || storage.kept.size > 0))
      aborter.abort(new Error('the user went back'))
      await assert.rejects(call, { message: 'the user went back' })
      assert.deepEqual([...storage.kept], [])
    }
    const { baseUrl, seen } = await startScripted(t, answered)
    const signal = AbortSignal.abort(new Error('before'))
    await assert.rejects(login({ ...credentials, baseUrl, signal }), { message: 'before' })
    assert.equal(seen.length, 0)
  })

  test('a refusal for good ends the call with its code, fields and all', async (t) => {
    const wrong = await startScripted(t, ticket('1'), problem(401, 'invalid_credentials'))
    const { code, needsPassword } = await errorOf(login({ ...credentials, ...wrong }))
    assert.deepEqual([code, needsPassword], ['invalid_credentials', false])
    const errors = [{ field: 'email', message: 'is not valid' }]
    const invalid = await startScripted(t, { status: 422, body: { code: 'invalid_request', errors } })
    assert.deepEqual((await errorOf(login({ ...credentials, ...invalid }))).problem, {
      code: 'invalid_request',
      errors,
    })
  })

  test('answers that no gateway gives end the call, and a password follows no redirection', async (t) => {
    const elsewhere = await startScripted(t, answered)
    const strange: Scripted[] = [
      { status: 200, text: '<p>A portal' },
      { status: 202, body: {} },
      { status: 404, text: 'nothing' },
      { status: 307, headers: { location: `${elsewhere.baseUrl}/v1/login` } },
    ]
    for (const answer of strange) {
      const { baseUrl, seen } = await startScripted(t, answer)
      assert.equal((await errorOf(login({ ...credentials, baseUrl }))).code, 'unexpected_answer')
      assert.equal(seen.length, 1)
    }
    assert.equal(elsewhere.seen.length, 0)
  })

  test('any other call waits in the same way, behind a path too, with its headers; one without a body answers null', async (t) => {
    const { baseUrl, seen } = await startScripted(t, ticket('1'), { status: 204, text: '' })
    const body = { currentPassword: 'old', newPassword: 'new' }
    const call = { method: 'PUT', path: '/v1/me/password', body, headers: { authorization: 'Bearer a' } }
    assert.equal(await ask({ ...call, baseUrl: `${baseUrl}/auth/`, holdS: 5 }), null)
    const [sent, redeemed] = seen
    assert.deepEqual([sent?.path, sent?.body, sent?.prefer], ['/auth/v1/me/password', body, 'wait=5'])
    assert.deepEqual(
      [redeemed?.path, redeemed?.body, redeemed?.prefer],
      ['/auth/v1/tickets/redeem', { ticket: '1' }, 'wait=5'],
    )
  })

  test('a connection on which nothing comes any more is given up, and the ticket redeemed on another', async (t) => {
    const { baseUrl, paths } = await startScripted(t, ticket('1'), 'held', answered)
    assert.deepEqual(await login({ ...credentials, baseUrl, holdS: 0 }), tokens)
    assert.deepEqual(paths(), ['login', 'tickets/redeem', 'tickets/redeem'])
  })
})
