// The old system, asked over HTTP: only a plain yes lets anybody in, and no question waits long.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'vitest'
import { OldSystem, type OldSystemOptions } from '../../src/consumer/old-system.ts'

const key = Buffer.from('a key of thirty-two bytes, or so.')

async function serving(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}/verify`
}

const options = (url: string, others: Partial<OldSystemOptions> = {}): OldSystemOptions => ({
  ...{ url, key, timeoutMs: 2_000, concurrency: 4 },
  ...others,
})

test('a signed question is answered yes or no', async (t) => {
  const url = await serving(t, async (request, response) => {
    const body = await text(request)
    const signature = createHmac('sha256', key).update(`${request.headers['spillway-timestamp']}.${body}`).digest('hex')
    assert.equal(request.headers['spillway-signature'], `v1=${signature}`)
    const { email, password } = JSON.parse(body)
    response.end(JSON.stringify({ verified: email === 'ada@example.test' && password === 'Passwort²' }))
  })
  const answers: string[] = []
  const oldSystem = new OldSystem(options(url, { answered: (answer) => void answers.push(answer) }))
  assert.equal(await oldSystem.ask('ada@example.test', 'Passwort²'), true)
  assert.equal(await oldSystem.ask('ada@example.test', 'Passwort2'), false)
  assert.deepEqual(answers, ['yes', 'no'])
})

test('whatever is no plain yes lets nobody in', async (t) => {
  const lies: RequestListener[] = [
    (_, response) => response.end('<html>Welcome</html>'),
    (_, response) => response.end('{"verified": "true"}'),
    (_, response) => response.end('{"verified": 1}'),
    (_, response) => response.end('true'),
    (_, response) => response.end('null'),
    (_, response) => response.end(`{"verified": true, "padding": "${'x'.repeat(5_000)}"}`),
    (_, response) => response.writeHead(500).end('{"verified": true}'),
    (_, response) => response.writeHead(201).end('{"verified": true}'),
    (request, response) =>
      request.url === '/elsewhere'
        ? response.end('{"verified": true}')
        : response.writeHead(307, { location: '/elsewhere' }).end(),
    (_, response) => response.write('{"verified": true') && response.destroy(),
  ]
  for (const [n, lie] of lies.entries()) {
    const oldSystem = new OldSystem(options(await serving(t, lie)))
    assert.equal(await oldSystem.ask('a@example.test', 'x'), undefined, `lie ${n}`)
  }
})

test('of many questions at once as many are sent as there are places, four times as many wait, and no others', async (t) => {
  let open = 0
  let most = 0
  const url = await serving(t, (_, response) => {
    most = Math.max(most, ++open)
    setTimeout(() => {
      open--
      response.end('{"verified": true}')
    }, 20)
  })
  const outcomes: string[] = []
  const oldSystem = new OldSystem(
    options(url, { concurrency: 3, timeoutMs: 30_000, answered: (outcome) => void outcomes.push(outcome) }),
  )
  const asked = Array.from({ length: 30 }, () => oldSystem.ask('a@example.test', 'x'))
  // Refused at once, before any answer.
  assert.equal(asked.filter((answer) => answer === undefined).length, 15)
  assert.deepEqual(outcomes, Array(15).fill('unavailable'))
  const answers = await Promise.all(asked.filter((answer) => answer !== undefined))
  assert.deepEqual(answers, Array(15).fill(true))
  assert.equal(most, 3)
  assert.equal(await oldSystem.ask('a@example.test', 'x'), true)
})

/** An old system whose answers a test lets out one by one. */
async function gated(t: TestContext) {
  const held: (() => void)[] = []
  const url = await serving(t, (_, response) => void held.push(() => response.end('{"verified": true}')))
  const sent = (count: number) => until(() => held.length >= count)
  return { url, sent, answer: () => held.shift()?.() }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

test('the wait for a place is not taken for a slow answer', async (t) => {
  const { url, sent, answer } = await gated(t)
  let now = 0
  const oldSystem = new OldSystem(options(url, { concurrency: 2, timeoutMs: 30_000 }), () => now)
  for (let round = 0; round < 3; round++) {
    const asked = Array.from({ length: 10 }, () => oldSystem.ask('a@example.test', 'x'))
    for (let n = 0; n < 5; n++) {
      await sent(2)
      // Five pairs wait for one another: the last ones for longer than the time-out.
      now += 10_000
      answer()
      answer()
      await Promise.all(asked.slice(n * 2, n * 2 + 2))
    }
    assert.deepEqual(await Promise.all(asked), Array(10).fill(true), `round ${round}`)
  }
})

test('slow answers count, and open the circuit: then one question at a time is asked until an answer is timely', async (t) => {
  const { url, sent, answer } = await gated(t)
  let now = 0
  const oldSystem = new OldSystem(options(url, { timeoutMs: 30_000 }), () => now)
  const ask = () => oldSystem.ask('a@example.test', 'x')
  async function answered(afterMs: number): Promise<unknown> {
    const asked = ask()
    await sent(1)
    now += afterMs
    answer()
    return await asked
  }
  // Timely ones between them reset nothing.
  for (let n = 0; n < 5; n++) {
    assert.equal(await answered(15_001), true)
    if (n < 4) assert.equal(await answered(15_000), true)
  }
  const probe = ask()
  await sent(1)
  assert.equal(ask(), undefined)
  now += 15_001
  answer()
  assert.equal(await probe, true)
  // It was slow: one at a time, without a pause.
  assert.equal(await answered(100), true)
  const [one, other] = [ask(), ask()]
  await sent(2)
  answer()
  answer()
  assert.deepEqual(await Promise.all([one, other]), [true, true])
})

test('a question that its own deadline ends, waiting or sent, counts against nobody', async (t) => {
  const { url, sent, answer } = await gated(t)
  const oldSystem = new OldSystem(options(url, { concurrency: 1, timeoutMs: 30_000 }))
  for (let n = 0; n < 7; n++) {
    const deadline = new AbortController()
    const asked = oldSystem.ask('a@example.test', 'x', deadline.signal)
    const waiting = oldSystem.ask('b@example.test', 'x', deadline.signal)
    await sent(1)
    deadline.abort()
    assert.deepEqual(await Promise.all([asked, waiting]), [undefined, undefined])
    answer()
  }
  const last = oldSystem.ask('a@example.test', 'x')
  await sent(1)
  answer()
  assert.equal(await last, true)
})

test('after five failures nothing is asked for ten seconds, then one question at a time until one is answered', async (t) => {
  let asked = 0
  let isUp = false
  const url = await serving(t, (_, response) => {
    asked++
    if (isUp) response.end('{"verified": true}')
    else response.writeHead(503).end()
  })
  let now = 0
  const oldSystem = new OldSystem(options(url), () => now)
  const ask = () => oldSystem.ask('a@example.test', 'x')
  for (let n = 0; n < 5; n++) assert.equal(await ask(), undefined)
  assert.equal(asked, 5)
  for (let n = 0; n < 20; n++) assert.equal(ask(), undefined)
  assert.equal(asked, 5)
  now = 10_001
  assert.deepEqual(await Promise.all([ask(), ask(), ask()]), [undefined, undefined, undefined])
  assert.equal(asked, 6)
  assert.equal(ask(), undefined)
  assert.equal(asked, 6)
  now = 20_002
  isUp = true
  assert.equal(await ask(), true)
  assert.deepEqual(await Promise.all([ask(), ask()]), [true, true])
})

test('one that answers never is given up after its time, and one that is gone at once', async (t) => {
  const silent = new OldSystem(options(await serving(t, () => undefined), { timeoutMs: 150 }))
  assert.equal(await silent.ask('a@example.test', 'x'), undefined)
  const gone = new OldSystem(options('http://127.0.0.1:1/'))
  assert.equal(await gone.ask('a@example.test', 'x'), undefined)
})
