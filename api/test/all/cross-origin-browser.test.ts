// Pages of other origins in a real Chromium: log in, are limited, know when to come back, and are monitored.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { listening } from '@spillway/infra/processes/port'
import { chromiumOptions, skipWithoutChromium as skip } from '@spillway/infra/test/pictures'
import { chromium } from 'playwright-core'
import { afterAll, test } from 'vitest'

import { openSystem } from '../system.ts'

test.skipIf(skip)('in a real browser, a page of a named origin uses the API, and one of another cannot', async () => {
  const system = await openSystem()
  await system.worker()
  const [named, other] = [await servePage(), await servePage()]
  // Browsers resolve names below localhost to this machine.
  const [preview, another] = ['branch-7.preview', 'a.branch-7.preview'].map(
    (labels) => `http://${labels}.localhost:${new URL(other).port}`,
  )
  const origins = `${named},http://*.preview.localhost:${new URL(other).port}`
  const { api } = await system.gateway({ CORS_ORIGINS: origins, LIMIT_PER_ADDRESS: '3' })
  const account = await api.newAccount()
  const browser = await chromium.launch(chromiumOptions)
  afterAll(() => browser.close())

  /** What a page sees: a status and two headers, or that the browser lets it see nothing. */
  async function ask(origin: string, path: string, init: RequestInit): Promise<unknown> {
    const page = await browser.newPage()
    await page.goto(origin)
    const seen = await page.evaluate(
      async ({ target, init }) => {
        try {
          const answer = await fetch(target, init)
          return { status: answer.status, waits: Number(answer.headers.get('retry-after')) > 0 }
        } catch (error) {
          return String(error)
        }
      },
      { target: api.url + path, init },
    )
    await page.close()
    return seen
  }
  const credentials = {
    method: 'POST',
    headers: { 'content-type': 'application/json', prefer: 'wait=5', 'spillway-device': 'none', ...MONITORED },
    body: JSON.stringify(account),
  }
  const guess = { ...credentials, body: JSON.stringify({ ...account, password: 'another pass phrase' }) }
  const bearer = { headers: { authorization: 'Bearer none' } }
  assert.match(String(await ask(other, '/v1/login', credentials)), /Failed to fetch/)
  assert.match(String(await ask(other, '/healthz', {})), /Failed to fetch/)
  assert.deepEqual(await ask(named, '/v1/login', credentials), { status: 200, waits: false })
  assert.deepEqual(await ask(`${preview}`, '/v1/me', bearer), { status: 401, waits: false })
  assert.match(String(await ask(`${another}`, '/v1/me', bearer)), /Failed to fetch/)
  assert.deepEqual(await ask(named, '/v1/me', bearer), { status: 401, waits: false })
  assert.deepEqual(await ask(named, '/v1/me/sessions', { ...bearer, method: 'DELETE' }), { status: 401, waits: false })
  // The registration has counted as well.
  for (let n = 0; n < 2; n += 1) assert.deepEqual(await ask(named, '/v1/login', guess), { status: 401, waits: false })
  assert.deepEqual(await ask(named, '/v1/login', guess), { status: 429, waits: true })
})

/** What Sentry, OpenTelemetry and Datadog add to the requests of a page. */
const MONITORED = {
  baggage: 'sentry-environment=production,sentry-trace_id=771a43a4192642f0b136d5159a501700',
  'sentry-trace': '771a43a4192642f0b136d5159a501700-b7ad6b7169203331-1',
  traceparent: '00-771a43a4192642f0b136d5159a501700-b7ad6b7169203331-01',
  tracestate: 'dd=s:1;o:rum',
  'x-datadog-origin': 'rum',
  'x-datadog-parent-id': '13235353014750950193',
  'x-datadog-sampling-priority': '1',
  'x-datadog-trace-id': '12803142154231813888',
}

/** An origin with an empty page. */
async function servePage(): Promise<string> {
  const server = createServer((_request, response) => response.setHeader('content-type', 'text/html').end('<p>A page'))
  afterAll(() => server.close())
  return `http://127.0.0.1:${await listening(server)}`
}
