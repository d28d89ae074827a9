// Sessions in cookies, in a real Chromium: pages of other sites and hosts attack a user.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { listening } from '@spillway/infra/processes/port'
import { readMetric } from '@spillway/infra/rig/api-client'
import { chromiumOptions, skipWithoutChromium as skip } from '@spillway/infra/test/pictures'
import { decodeJwt } from 'jose'
import { chromium, type Page } from 'playwright-core'
import { afterAll, test } from 'vitest'
import { expect, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

/** Browsers resolve names below localhost to this machine, as secure; `shop.localhost` is a site */
const HOSTS = { app: 'app.shop.localhost', gateway: 'login.shop.localhost' }
const ATTACKERS = { 'another host of the site': 'evil.shop.localhost', 'another site': 'attacker.localhost' }
const TIMEOUT_MS = 120_000

test.skipIf(skip)(
  'pages of other origins open, renew and end no session in somebody’s browser',
  async () => {
    const system = await openSystem()
    await system.worker()
    /** Serves an empty page, forms that are sent at once, and redirections that keep the method. */
    const pages = createServer(({ url = '/' }, response) => {
      const { pathname, searchParams } = new URL(url, 'http://localhost')
      const to = searchParams.get('to') ?? ''
      if (pathname === '/redirect') return void response.writeHead(307, { location: to }).end()
      // A cookie for the whole site, which a server of the site may try to set.
      const tossed = `__Host-spillway-session=${searchParams.get('toss')}; Domain=shop.localhost; Path=/; Secure`
      response.setHeader('content-type', 'text/html').setHeader('set-cookie', tossed).end('<!doctype html><p>A page')
    })
    afterAll(() => pages.close())
    const port = await listening(pages)
    const originOf = (host: string) => `http://${host}:${port}`
    const gateway = await system.gateway({ SESSION_COOKIE: 'true', CORS_ORIGINS: originOf(HOSTS.app) })
    const target = `http://${HOSTS.gateway}:${new URL(gateway.url).port}`
    const [owner, attacker] = [await gateway.api.newAccount(), await gateway.api.newAccount()]
    const ownerTokens = expect(200, await gateway.api.login(owner))
    const attackerTokens = expect(200, await gateway.api.login(attacker))
    const sessionsOf = async (token: string) => {
      const { body } = await gateway.api.call('GET', '/v1/me/sessions', { token })
      return JSON.stringify(body)
    }
    const refused = () => readMetric(gateway.opsUrl, 'spillway_http_requests_total', 'outcome="other_site"')

    const browser = await chromium.launch(chromiumOptions)
    afterAll(() => browser.close())
    const context = await browser.newContext()
    context.setDefaultTimeout(TIMEOUT_MS)
    const app = await context.newPage()
    await app.goto(originOf(HOSTS.app))
    /** What the page of the application gets; the session is in the cookie. */
    const ask = (path: string, body?: object) =>
      app.evaluate(
        async ({ url, body }) => {
          const answer = await fetch(url, {
            method: 'POST',
            credentials: 'include',
            ...(body && { body, headers: { 'content-type': 'application/json' } }),
          })
          const text = await answer.text()
          return { status: answer.status, accessToken: text && String(JSON.parse(text).accessToken) }
        },
        { url: target + path, body: body && JSON.stringify(body) },
      )
    assert.equal((await ask('/v1/login', owner)).status, 200)
    assert.equal((await ask('/v1/token/refresh')).status, 200)
    const before = {
      owner: await sessionsOf(ownerTokens.accessToken),
      attacker: await sessionsOf(attackerTokens.accessToken),
    }

    for (const [where, host] of Object.entries(ATTACKERS)) {
      const { ticket } = expect(202, await gateway.api.login(attacker, respondAsync))
      const counted = await refused()
      const page = await context.newPage()
      await page.goto(`${originOf(host)}/?toss=attackers.token`)
      await page.evaluate(
        `document.cookie = '__Host-spillway-session=attackers.token; Domain=shop.localhost; Path=/; Secure'`,
      )
      const seen = await attack(page, { target, credentials: attacker, ticket })
      assert.deepEqual(
        seen.filter((text) => text !== 'unseen'),
        [],
        where,
      )
      await submitForms(page, target, attacker)
      // Some have the body of a form, or no cookie. Requests without a preflight get no answer.
      assert.ok(
        (await refused()) >= counted + 8,
        `${where}: ${(await refused()) - counted} requests arrived and were refused`,
      )
      await page.close()
    }

    const after = {
      owner: await sessionsOf(ownerTokens.accessToken),
      attacker: await sessionsOf(attackerTokens.accessToken),
    }
    assert.deepEqual(after, before, 'opened, renewed or ended')
    const { status, accessToken } = await ask('/v1/token/refresh')
    assert.deepEqual([status, decodeJwt(accessToken).sub], [200, decodeJwt(ownerTokens.accessToken).sub])
    assert.equal((await ask('/v1/logout')).status, 204)
    assert.equal((await ask('/v1/token/refresh')).status, 401)
  },
  TIMEOUT_MS,
)

/** Every call that a script of the page can make. Gives what it sees of the answers. */
function attack(page: Page, means: { target: string; credentials: object; ticket: string }): Promise<string[]> {
  return page.evaluate(`(async ({ target, credentials, ticket }) => {
    const bodies = {
      '/v1/token/refresh': undefined,
      '/v1/logout': undefined,
      '/v1/login': JSON.stringify(credentials),
      '/v1/tickets/redeem': JSON.stringify({ ticket }),
    }
    const seen = []
    for (const mode of ['no-cors', 'cors'])
      for (const [path, body] of Object.entries(bodies)) {
        const headers = mode === 'cors' && body ? { 'content-type': 'application/json' } : {}
        const init = { method: 'POST', credentials: 'include', mode, headers, body }
        for (const url of [target + path, '/redirect?to=' + encodeURIComponent(target + path)])
          seen.push(
            await fetch(url, init).then(
              (answer) => (answer.type === 'opaque' ? 'unseen' : url + ' ' + answer.status),
              () => 'unseen',
            ),
          )
        navigator.sendBeacon(target + path, body)
      }
    return seen
  })(${JSON.stringify(means)})`)
}

/** Forms need no permission: each encoding, to each call, in frames; and one leaves the page. */
async function submitForms(page: Page, target: string, credentials: object): Promise<void> {
  // As text/plain, name and value are the JSON of a login.
  const field = { name: `${JSON.stringify(credentials).slice(0, -1)},"x":"`, value: '"}' }
  await page.evaluate(`(async () => {
    for (const path of ['/v1/token/refresh', '/v1/logout', '/v1/login', '/v1/tickets/redeem'])
      for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
        const frame = document.createElement('iframe')
        frame.name = path + enctype
        const form = document.createElement('form')
        Object.assign(form, { method: 'post', action: ${JSON.stringify(target)} + path, enctype, target: frame.name })
        form.append(Object.assign(document.createElement('input'), ${JSON.stringify(field)}))
        document.body.append(frame, form)
        const loaded = new Promise((resolve) => frame.addEventListener('load', resolve))
        form.submit()
        await loaded
      }
  })()`)
  // An answer without a body leads nowhere.
  const leave = page.waitForURL(`${target}/**`).catch(() => undefined)
  await page.evaluate(`(() => {
    const form = document.createElement('form')
    Object.assign(form, { method: 'post', action: ${JSON.stringify(`${target}/v1/logout`)} })
    document.body.append(form)
    form.submit()
  })()`)
  await leave
}
