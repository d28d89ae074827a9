// Storms on running applications: what is measured, said and left out, and how the program ends.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startProcess } from '@spillway/infra/processes/node-process'
import { listening } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { canIssue, createAuthority, issue } from '@spillway/infra/rig/certificates'
import { scratchDir } from '@spillway/infra/rig/namespace'
import { describe, test } from 'vitest'
import { BODY, PASSWORD, SLOW_MS, startApplication, startStorm, stormed, TRIALS } from '../storm/storming.ts'

/** As short as a storm can be. */
const SHORT = ['--calm', '1', '--duration', '1', '--after', '2']
const QUICK = ['--login', 'POST /quick-login', '--users', '5', ...SHORT]
/** Above what a busy machine adds to a request that waits for nothing. */
const GENEROUS = ['--p99', '3000']

describe('a storm says what it measured:', () => {
  test('logins that hash in the handler keep a probe on the thread pool waiting: exit code 1, and one import to change', async (t) => {
    // One thread, so that a probe waits for all of the users' hashes: for seconds on any machine.
    const { url } = await startApplication(t, { UV_THREADPOOL_SIZE: '1' })
    const login = ['--login', 'POST /login', '--body', BODY, '--users', '80', ...SHORT, '--timeout', '30']
    const { code, said, result, html } = await stormed(t, url, ...login, '--probe', 'GET /file', '--p99', '1000')
    assert.equal(code, 1, said)
    const { logins, probes } = result()
    const [file] = probes
    assert.ok((file?.calm.p99Ms ?? Infinity) < 1_000 && (file?.storm.p99Ms ?? 0) > 1_000, JSON.stringify(probes))
    assert.ok(logins.success > 0 && (logins.p50Ms ?? 0) > 500, JSON.stringify(logins))
    assert.match(said, /^80 users logged in to http:\S+ \(POST \/login\) again and again for 1(\.\d)? s\./)
    assert.match(said, /GET \/file took (≥ )?\S+ ms at p99 in the storm.*: more than the 1,000 ms that it may\./)
    for (const text of [said, html]) assert.match(text, /@spillway\/client\/bcrypt/)
  })

  test('probes within the limit: exit code 0, nothing to change, and redirects are not followed', async (t) => {
    const { url, seen } = await startApplication(t)
    const { code, said, result } = await stormed(t, url, ...QUICK, ...GENEROUS, '--probe', '/plain', '--probe', '/file')
    assert.equal(code, 0, said)
    assert.match(said, /nothing has to change for that many/)
    assert.doesNotMatch(said, /import/)
    const { logins, probes } = result()
    assert.ok(logins.success > 0 && logins.perSecond > 0 && logins.lost + logins.refused + logins.other === 0)
    assert.deepEqual(
      // How many were asked, and how many logged in, depends on the machine.
      probes.map(({ name, storm }) => [name, storm.lost, storm.asked > 0]),
      [
        ['GET /plain', 0, true],
        ['GET /file', 0, true],
      ],
    )
    assert.equal((await seen())['/followed'], undefined)
  })

  test('a target that is slow when calm: exit code 1, and nothing about hashing', async (t) => {
    const { url } = await startApplication(t)
    const { code, said } = await stormed(t, url, ...QUICK, '--probe', 'GET /slow', '--p99', '200')
    assert.equal(code, 1, said)
    assert.match(said, /GET \/slow took more than 200 ms before anyone logged in, so this storm says nothing/)
    assert.doesNotMatch(said, /import/)
  })

  test('the logins begin when all probes before them are answered, so that none of these waits for a login', async (t) => {
    const { url, seen } = await startApplication(t)
    await stormed(t, url, ...QUICK, '--probe', 'GET /slow')
    const { '/slow': probes = [], '/quick-login': logins = [] } = await seen()
    const firstMs = logins[TRIALS]?.atMs ?? 0
    const atMs = probes.slice(1).map(({ atMs }) => atMs)
    // A timer may be a millisecond early.
    const atLeastMs = SLOW_MS - 1
    const last = atMs.findIndex((ms, index) => (atMs[index + 1] ?? ms) - ms >= atLeastMs)
    assert.ok(last > 0 && firstMs - (atMs[last] ?? firstMs) >= atLeastMs, JSON.stringify({ firstMs, atMs }))
  })

  test('a probe that fails in the storm counts as the whole time limit, however quickly it fails', async (t) => {
    const { url } = await startApplication(t)
    const { code, said, result } = await stormed(t, url, ...QUICK, ...GENEROUS, '--probe', 'GET /fails-later')
    assert.equal(code, 1, said)
    const [probe] = result().probes
    assert.equal(probe?.storm.p99Ms, 10_000)
    assert.ok((probe?.storm.lost ?? 0) > 0)
    assert.match(said, /took ≥ 10,000 ms at p99 in the storm, and \d+ of \d+ had no good answer/)
  })

  test('while the application stands still, every probe that is due is timed from when it was due', async (t) => {
    const { url, seen, signal } = await startApplication(t)
    const storm = stormed(t, url, ...QUICK, '--duration', '4', '--probe', 'GET /plain')
    await until(async () => ((await seen())['/quick-login']?.length ?? 0) > 10)
    signal('SIGSTOP')
    const standsStillMs = 1_500
    await sleep(standsStillMs)
    signal('SIGCONT')
    const { result } = await storm
    const slow = result().probes[0]?.slowest.filter(({ ms }) => ms > 150) ?? []
    // Of each fifth of a second; a prober that waits for its answer would have one of them.
    assert.ok(slow.length >= 6, JSON.stringify(slow))
    assert.ok(Math.max(...slow.map(({ ms }) => ms)) > standsStillMs - 300, JSON.stringify(slow))
  })

  for (const [path, status] of [
    ['/busy-login', 503],
    ['/accepted-login', 202],
  ] as const)
    test(`refused logins come back as told, and so do those that are accepted for later: ${path}`, async (t) => {
      const { url, seen } = await startApplication(t)
      const login = ['--login', `POST ${path}`, '--body', 'n={n}', '--users', '3', ...SHORT, '--duration', '4']
      const { code, said, result } = await stormed(t, url, ...login)
      assert.equal(code, 0, said)
      const { refused, success, lost, other, p99Ms } = result().logins
      assert.ok(refused >= 3 && refused <= 3 * 4 + 3, JSON.stringify(result().logins))
      assert.deepEqual([success, lost, other, p99Ms], [0, 0, 0, undefined])
      assert.match(
        said,
        new RegExp(`No login succeeded\\. Of \\d+, \\d+ refused with a time to come back \\(${status}: \\d+\\)`),
      )
      assert.match(said, /Most logins were refused, so this storm says little/)
      const ofUser2 = (await seen())[path]?.filter(({ body }) => body === 'n=2').map(({ atMs }) => atMs) ?? []
      const pauses = ofUser2.slice(1).map((atMs, index) => atMs - (ofUser2[index] ?? 0))
      assert.ok(pauses.length >= 1 && pauses.every((ms) => ms >= 990), JSON.stringify(pauses))
    })

  for (const [path, reason, most, advice] of [
    ['/silent-login', 'timeout', 4, /\d+ logins had no answer\. If they waited for their hash/],
    ['/closed-login', 'ECONNRESET', 12, /\d+ logins had no answer, most by ECONNRESET/],
  ] as const) {
    test(`logins without an answer are lost, with the whole time limit: ${path}`, async (t) => {
      const { url } = await startApplication(t)
      const login = ['--login', `POST ${path}`, '--users', '4', ...SHORT, '--timeout', '3']
      const { code, said, result } = await stormed(t, url, ...login)
      assert.equal(code, 0, said)
      const { lost, success, p50Ms, reasons } = result().logins
      assert.ok(lost >= 4 && lost <= most && success === 0, JSON.stringify(reasons))
      assert.deepEqual([p50Ms, Object.keys(reasons)], [3_000, [reason]])
      assert.match(said, advice)
      assert.match(said, /Nothing is known about other endpoints/)
    })
  }

  test('a kept connection that the server closes when it is used again loses no login: it is sent once more', async (t) => {
    const { url } = await startApplication(t)
    const { said, result } = await stormed(t, url, '--login', 'POST /closed-when-reused', '--users', '3', ...SHORT)
    const { success, lost, other } = result().logins
    assert.ok(success > 3, said)
    assert.deepEqual([lost, other], [0, 0])
  })

  test('other answers are neither lost nor refused', async (t) => {
    const { url } = await startApplication(t)
    const { said, result } = await stormed(t, url, '--login', 'POST /broken-login', '--users', '2', ...SHORT)
    const { other, reasons } = result().logins
    assert.ok(other > 0)
    assert.deepEqual(reasons, { 500: other })
    assert.match(said, /logins had an answer that was not expected/)
  })

  test('Ctrl-C ends it early, and what was measured is said', async (t) => {
    const { url, seen } = await startApplication(t)
    const login = ['--login', 'POST /quick-login', '--users', '2', '--calm', '1', '--duration', '60']
    const storm = startStorm(t, '--target', url, ...login, '--probe', 'GET /plain')
    const asked = async (path: string) => (await seen())[path]?.length ?? 0
    await until(async () => (await asked('/quick-login')) > 10)
    const probes = await asked('/plain')
    await until(async () => (await asked('/plain')) > probes + 2)
    storm.signal('SIGINT')
    assert.deepEqual(await storm.exited, { code: 130, signal: null })
    const said = storm.output().replaceAll('\n', ' ')
    assert.match(said, /^2 users logged in .* then the storm was interrupted\. \S+ logins a second succeeded/)
    assert.match(said, /GET \/plain took/)
    assert.doesNotMatch(said, /nothing has to change/)
  })
})

describe('nothing is stormed, exit code 2,', () => {
  test('when a login does not work: its status and the beginning of its answer are said, without what was sent', async (t) => {
    const { url, seen } = await startApplication(t)
    const { code, said } = await stormed(t, url, '--login', 'POST /echoing-login', '--body', BODY, ...SHORT)
    assert.equal(code, 2)
    assert.match(
      said,
      /^Nothing was stormed: user 1 cannot log in\. POST \/echoing-login was answered with 422: no such user: \[31m/,
    )
    for (const word of ['correct', 'horse', 'battery', 'user1']) assert.ok(!said.includes(word), said)
    assert.equal((await seen())['/echoing-login']?.length, 1)
  })

  const five = ['--login', '/login', '--body', BODY, '--users', '5', ...SHORT]
  test.for([
    [
      'a login has another status',
      [...QUICK, '--expect', '200,201'],
      /user 1 cannot log in\. POST \/quick-login .* 302\.$/,
    ],
    ['the last user cannot log in', five, /user 5 cannot log in\. POST \/login was answered with 401\.$/],
    ['a probe fails', [...QUICK, '--probe', '/not-there?token=a'], /a probe does not work\. GET \/not-there .* 404\.$/],
  ] as const)('when %s', async ([, args, sentence], t) => {
    const { url } = await startApplication(t, { ACCOUNTS: '4' })
    const { code, said } = await stormed(t, url, ...args)
    assert.equal(code, 2)
    assert.match(said, /^Nothing was stormed: /)
    assert.match(said, sentence)
  })

  test.for([
    ['http://192.0.2.1:3000', /192\.0\.2\.1 is not this machine .* only with --beyond-loopback/],
    ['http://127.0.0.1:1', /Nothing listens at http:\/\/127\.0\.0\.1:1/],
  ] as const)(
    'when the target is another machine, unless that was allowed; or nothing listens: %s',
    async ([target, sentence], t) => {
      const { code, said } = await stormed(t, target, ...QUICK)
      assert.equal(code, 2)
      assert.match(said, sentence)
    },
  )

  test('when its figures could not be written', async (t) => {
    const { url, seen } = await startApplication(t)
    const { code, said } = await stormed(t, url, ...QUICK, '--json', '/nowhere/storm.json')
    assert.equal(code, 2)
    assert.match(said, /\/nowhere\/storm\.json cannot be written/)
    assert.deepEqual(Object.keys(await seen()), ['/seen'])
  })
})

test('the request may be a file; each user has a number, and no password is said or written', async (t) => {
  const { url, seen } = await startApplication(t)
  const dir = await scratchDir(t)
  const file = join(dir, 'login.json')
  const headers = { cookie: 'of=user{n}; secret=hunter-{n}' }
  const path = '/login?key=hunter-0'
  const body = { email: 'user{n}@example.test', password: PASSWORD }
  await writeFile(file, JSON.stringify({ path, headers, body }))
  const { code, said, written, html } = await stormed(
    t,
    url,
    ...['--request', file, '--users', '4', ...SHORT, ...GENEROUS],
    ...['--probe', 'GET /plain?key=hunter-0', '--probe-header', 'cookie: hunter'],
  )
  assert.equal(code, 0, said)
  const { '/login': logins = [], '/plain': probes = [] } = await seen()
  const users = new Set(logins.map(({ body, cookie }) => `${JSON.parse(body).email} ${cookie}`))
  assert.deepEqual(
    [...users].sort(),
    [1, 2, 3, 4].map((n) => `user${n}@example.test of=user${n}; secret=hunter-${n}`),
  )
  assert.deepEqual([...new Set(probes.map(({ cookie }) => cookie))], ['hunter'])
  for (const text of [said, written, html]) {
    assert.match(text, /POST \/login/)
    for (const secret of ['hunter', 'horse', 'stäple', 'example.test']) assert.ok(!text.includes(secret), secret)
  }
})

test.skipIf(!canIssue())(
  'an application over TLS is called by its name, and may have a certificate of its own',
  async (t) => {
    const dir = await scratchDir(t)
    const { certFile, keyFile } = await issue(dir, await createAuthority(dir, 'authority'), { name: 'localhost' })
    const hosts = new Set<string | undefined>()
    const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)])
    // On one of the addresses that the name may have.
    const server = createServer({ cert, key }, ({ headers }, response) => {
      hosts.add(headers.host)
      response.end()
    })
    t.onTestFinished(() => void server.close())
    const host = `localhost:${await listening(server)}`
    const { code, said } = await stormed(t, `https://${host}`, ...QUICK, ...GENEROUS, '--probe', '/plain')
    assert.equal(code, 0, said)
    assert.deepEqual([...hosts], [host])
  },
)

test('pnpm load storm is the same command, with its own help and exit codes', async () => {
  const load = async (...args: string[]) => {
    const loaded = startProcess({ entry: 'loadtests/src/main.ts', args, nodeArgs: ['--import', 'tsx'] })
    return { code: (await loaded.exited).code, said: loaded.output() }
  }
  const [help, nowhere, mistaken] = await Promise.all([
    load('storm', '--help'),
    load('storm', '--target', 'http://127.0.0.1:1', '--login', '/login'),
    load('--help'),
  ])
  assert.equal(help.code, 0)
  assert.match(help.said, /^pnpm load storm --target url --login 'POST \/login'/)
  assert.equal(nowhere.code, 2)
  assert.match(nowhere.said, /^Nothing listens at/)
  assert.match(mistaken.said, /^pnpm load storm --target url/m)
})
