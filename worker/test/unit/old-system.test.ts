// The old system, asked over HTTP: right, wrong, slow, down, lying. Only a plain yes lets anybody in, and no login waits long.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'vitest'
import { createOldSystem, type OldSystemOptions } from '../../src/consumer/old-system.ts'

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
  const oldSystem = createOldSystem(options(url, { answered: (answer) => void answers.push(answer) }))
  assert.equal(await oldSystem.verifies('ada@example.test', 'Passwort²'), true)
  assert.equal(await oldSystem.verifies('ada@example.test', 'Passwort2'), false)
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
    const oldSystem = createOldSystem(options(await serving(t, lie)))
    assert.equal(await oldSystem.verifies('a@example.test', 'x'), false, `lie ${n}`)
  }
})

test('of many questions at once no more are open than the bound, and all are answered', async (t) => {
  let open = 0
  let most = 0
  const url = await serving(t, (_, response) => {
    most = Math.max(most, ++open)
    setTimeout(() => {
      open--
      response.end('{"verified": true}')
    }, 20)
  })
  const oldSystem = createOldSystem(options(url, { concurrency: 3, timeoutMs: 30_000 }))
  const answers = await Promise.all(Array.from({ length: 30 }, () => oldSystem.verifies('a@example.test', 'x')))
  assert.ok(answers.every(Boolean))
  assert.equal(most, 3)
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
  const oldSystem = createOldSystem(options(url), () => now)
  const ask = () => oldSystem.verifies('a@example.test', 'x')
  for (let n = 0; n < 5; n++) assert.equal(await ask(), false)
  assert.equal(asked, 5)
  for (let n = 0; n < 20; n++) assert.equal(await ask(), false)
  assert.equal(asked, 5)
  now = 10_001
  assert.deepEqual(await Promise.all([ask(), ask(), ask()]), [false, false, false])
  assert.equal(asked, 6)
  assert.equal(await ask(), false)
  assert.equal(asked, 6)
  now = 20_002
  isUp = true
  assert.equal(await ask(), true)
  assert.deepEqual(await Promise.all([ask(), ask()]), [true, true])
})

test('one that answers never is given up after its time, and one that is gone at once', async (t) => {
  const silent = createOldSystem(options(await serving(t, () => undefined), { timeoutMs: 150 }))
  assert.equal(await silent.verifies('a@example.test', 'x'), false)
  const gone = createOldSystem(options('http://127.0.0.1:1/'))
  assert.equal(await gone.verifies('a@example.test', 'x'), false)
})
