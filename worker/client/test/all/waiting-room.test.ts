// The waiting room in a real Chromium, with a server that answers as a gateway does: tickets, a session in a cookie, tabs, frames.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { listening } from '@spillway/infra/processes/port'
import { chromiumOptions, skipWithoutChromium as skip } from '@spillway/infra/test/pictures'
import { chromium, type Page } from 'playwright-core'
import { type TestContext, test } from 'vitest'

const TIMEOUT_MS = 60_000
/** How long a replaced token is good, as at a gateway. */
const GRACE_MS = 10_000
/** A page of it has no secure context, and so no Web Locks. */
const PLAIN_HOST = 'shop.lan.test'
const files: Record<string, [file: string, type: string]> = {
  '/': ['examples/waiting-room/index.html', 'text/html'],
  '/waiting-room.css': ['examples/waiting-room/waiting-room.css', 'text/css'],
  '/waiting-room.js': ['examples/waiting-room/waiting-room.js', 'text/javascript'],
  '/follow.js': ['dist/follow.js', 'text/javascript'],
}

/** Page and gateway on one origin. A ticket waits until `serve` is called. */
async function startShop(t: TestContext) {
  const sent: string[] = []
  let isServed = false
  /** Until when each token of the session is good. */
  const tokens = new Map<string, number>()
  const server = createServer(async ({ url = '', headers }, response) => {
    const [file, type = ''] = files[url] ?? []
    const answer = (status: number, body: object, cookie?: string) => {
      const set = cookie === undefined ? {} : { 'set-cookie': `session=${cookie}; HttpOnly; Path=/` }
      // A frame without an origin sends no cookie, and is another origin.
      const cors = { 'access-control-allow-origin': headers.origin ?? '*', 'access-control-allow-credentials': 'true' }
      const allowed = { 'access-control-allow-headers': 'content-type, prefer' }
      response.writeHead(status, { 'content-type': 'application/json', ...cors, ...allowed, ...set })
      response.end(JSON.stringify(body))
    }
    const shown = /session=(\w+)/.exec(headers.cookie ?? '')?.[1] ?? ''
    const enter = () => {
      const next = `s${tokens.size}`
      tokens.set(shown, Math.min(tokens.get(shown) ?? 0, Date.now() + GRACE_MS))
      tokens.set(next, Number.POSITIVE_INFINITY)
      answer(200, { accessToken: 'a', tokenType: 'Bearer', expiresIn: 900 }, next)
    }
    if (file !== undefined) {
      const text = await readFile(new URL(`../../${file}`, import.meta.url), 'utf8')
      response.writeHead(200, { 'content-type': type, 'access-control-allow-origin': '*' })
      return response.end(text.replace('http://127.0.0.1:3000', ''))
    }
    sent.push(url)
    if (url === '/v1/login') return answer(202, { ticket: 't', retryAfter: 1, position: 3, eta: 5 })
    if (url === '/v1/tickets/redeem')
      return isServed ? enter() : answer(202, { ticket: 't', retryAfter: 1, position: 2, eta: 4 })
    if (url === '/v1/logout') return answer(200, {}, '')
    if ((tokens.get(shown) ?? 0) > Date.now()) return enter()
    return answer(401, { code: 'invalid_refresh_token' })
  })
  t.onTestFinished(() => void server.close())
  const port = await listening(server)
  const browser = await chromium.launch({
    ...chromiumOptions,
    args: [...chromiumOptions.args, `--host-resolver-rules=MAP ${PLAIN_HOST} 127.0.0.1`],
  })
  t.onTestFinished(() => browser.close())
  const context = await browser.newContext()
  context.setDefaultTimeout(TIMEOUT_MS)
  return {
    port,
    sent,
    serve: () => {
      isServed = true
    },
    async open(host = '127.0.0.1') {
      const page = await context.newPage()
      await page.goto(`http://${host}:${port}`)
      return page
    },
  }
}

async function logIn(page: Page): Promise<void> {
  await page.getByLabel('E-mail address').fill('ada@example.test')
  await page.getByLabel('Password').fill('correct horse')
  await page.getByRole('button', { name: 'Log in' }).click()
}

const has = (page: Page, name: string) => page.getByRole('heading', { name }).waitFor()

for (const host of ['127.0.0.1', PLAIN_HOST]) {
  test.skipIf(skip)(
    `at ${host} a login waits, survives a reload, gets in without another click, and every tab with it`,
    async (t) => {
      const { open, serve, sent } = await startShop(t)
      const page = await open(host)
      assert.equal(await page.evaluate('isSecureContext'), host !== PLAIN_HOST)
      await logIn(page)
      await page.getByRole('status').filter({ hasText: 'people are ahead of you. It is expected to take' }).waitFor()
      const stored = await page.evaluate<string>('JSON.stringify(sessionStorage)')
      assert.ok(stored.includes('ticket') && !stored.includes('correct horse'), stored)
      await page.reload()
      await has(page, 'You are in the queue')
      serve()
      await has(page, 'You are logged in')
      assert.equal(sent.filter((path) => path === '/v1/login').length, 1)
      // Opened at once.
      const tabs = await Promise.all([1, 2, 3].map(() => open(host)))
      await Promise.all(tabs.map((tab) => has(tab, 'You are logged in')))
      await page.getByRole('button', { name: 'Log out' }).click()
      await has(page, 'Log in')
      await page.reload()
      await has(page, 'Log in')
    },
    TIMEOUT_MS,
  )
}

test.skipIf(skip)(
  'in a sandboxed frame, without storage and locks, a login gets in',
  async (t) => {
    const { open, serve, port } = await startShop(t)
    serve()
    const page = await open()
    const call = `import('http://127.0.0.1:${port}/follow.js').then(({ login }) => login({
      baseUrl: 'http://127.0.0.1:${port}', email: 'e', password: 'p' })).then(({ tokenType }) => parent.postMessage(tokenType, '*'))`
    const told = page.evaluate<string>(`new Promise((resolve) => {
      addEventListener('message', ({ data }) => resolve(data))
      const frame = Object.assign(document.createElement('iframe'), { sandbox: 'allow-scripts' })
      frame.srcdoc = ${JSON.stringify(`<script type="module">${call}</script>`)}
      document.body.append(frame)
    })`)
    assert.equal(await told, 'Bearer')
  },
  TIMEOUT_MS,
)
