// The client for pages in a real Chromium, as it is packed, on pages of another origin than the gateway's. With
// SPILLWAY_SCREENSHOTS=true it takes the pictures of the waiting room.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startProcess } from '@spillway/infra/processes/node-process'
import { freePort } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { chromiumOptions, skipWithoutChromium as skip, takePicture } from '@spillway/infra/test/pictures'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { type Browser, type BrowserContextOptions, chromium, type Page, type Route } from 'playwright-core'
import { type TestContext, test } from 'vitest'
import { bundlePageDoor } from '../../packaging/bundle.ts'
import { login } from '../../src/browser.ts'
import { SPIKE, startSlowSpillway } from '../browser/slow-spillway.ts'

const PAGES = 6
/** Other tests may keep every processor busy. */
const TIMEOUT_MS = 120_000

async function startRoom(t: TestContext, env: object) {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const system = await startSlowSpillway(t, { env: { ...env, CORS_ORIGINS: origin, SESSION_COOKIE: 'true' } })
  const client = await mkdtemp(join(tmpdir(), 'spillway-test-'))
  t.onTestFinished(() => rm(client, { recursive: true, force: true }))
  await bundlePageDoor(client)
  const args = ['--gateway', system.gateway.url, '--port', String(port), '--client', client]
  const server = startProcess({ entry: 'worker/client/examples/waiting-room/serve.mjs', args })
  t.onTestFinished(() => void server.close())
  await server.waitForLog(({ msg = '' }) => msg.startsWith('The waiting room of '))
  const browser = await chromium.launch(chromiumOptions)
  t.onTestFinished(() => browser.close())
  return {
    ...system,
    origin,
    open: (options?: BrowserContextOptions, prepare?: (page: Page) => Promise<void>) =>
      open(browser, origin, options, prepare),
  }
}

/** A page in a profile of its own, and the paths of what it has sent to the gateway. */
async function open(
  browser: Browser,
  origin: string,
  options: BrowserContextOptions = {},
  prepare?: (page: Page) => Promise<void>,
) {
  const context = await browser.newContext({ viewport: { width: 900, height: 700 }, ...options })
  context.setDefaultTimeout(TIMEOUT_MS)
  const page = await context.newPage()
  const sent: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'POST') sent.push(new URL(request.url()).pathname)
  })
  await prepare?.(page)
  await page.goto(origin)
  return { page, sent }
}

test.skipIf(skip)(
  'a spike of ten times the capacity in a real browser: everyone gets in without a click',
  async (t) => {
    const { gateway, account, open, passwords, sessions } = await startRoom(t, SPIKE.env)
    const { serviceMs, first, later, giveUpAfterMs } = SPIKE
    const credentials = await account(serviceMs)
    const pages = await Promise.all(Array.from({ length: PAGES }, () => open()))
    const options = { ...credentials, baseUrl: gateway.url, storage: null, giveUpAfterMs }
    const come = ({ page }: { page: Page }, clients: number) => page.evaluate<string[]>(clientsOf(clients, options))
    const early = pages.map((page) => come(page, first / PAGES))
    await until(async () => (await passwords(first)).ticketed > 0)
    const all = await Promise.all([...pages.map((page) => come(page, later / PAGES)), ...early])
    const logins = first + later
    assert.deepEqual(
      all.flat(),
      Array.from({ length: logins }, () => 'Bearer'),
    )
    assert.equal(await sessions(credentials.email), logins)
    const { sent, needed, refused, ticketed } = await passwords(logins)
    assert.ok(refused > 0 && ticketed > 0, `${refused} were refused, ${ticketed} got tickets`)
    assert.equal(sent, needed, 'a password was sent where a ticket would do')
  },
)

/** So many clients in a page, which log in at once. */
function clientsOf(clients: number, options: object): string {
  return `import('/spillway/browser.js').then(({ login }) => {
    const loggedIn = () => login(${JSON.stringify(options)}).then(({ tokenType }) => tokenType, String)
    return Promise.all(Array.from({ length: ${clients} }, loggedIn))
  })`
}

test.skipIf(skip)('the waiting room: a login waits, survives a reload and gets in without another click', async (t) => {
  const { gateway, account, open, sessions } = await startRoom(t, { LOGIN_WAIT_MS: '1000', TICKET_TTL_MS: '60000' })
  const { email, password } = await account(2_000)
  const others = { ...(await account(500)), baseUrl: gateway.url, storage: null }
  const crowd = Promise.all(Array.from({ length: 16 }, () => login(others)))
  const wide = await open()
  const phone = await open({ viewport: { width: 390, height: 844 }, colorScheme: 'dark', isMobile: true })
  for (const { page } of [wide, phone]) {
    await page.getByLabel('E-mail address').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Log in' }).click()
  }
  const place = (page: Page) => page.getByRole('status').filter({ hasText: 'Your place in the queue is kept.' })
  for (const { page } of [wide, phone]) await place(page).waitFor()
  for (const { page } of [wide, phone]) {
    await place(page)
      .filter({ hasText: /(people are|person is) ahead of you\. It is expected to take / })
      .waitFor()
    await page.locator('#position', { hasText: /^\d+$/ }).waitFor()
  }
  await takePicture(wide.page, 'waiting-room')
  await takePicture(phone.page, 'waiting-room-phone-dark')
  const stored = await phone.page.evaluate<string>('JSON.stringify(sessionStorage)')
  assert.ok(stored.includes('ticket') && !stored.includes(password), stored)
  await phone.page.reload()
  await place(phone.page).waitFor()
  for (const { page, sent } of [wide, phone]) {
    await page.getByRole('heading', { name: 'You are logged in' }).waitFor()
    assert.equal(sent.filter((path) => path === '/v1/login').length, 1)
    assert.equal(await page.evaluate('sessionStorage.length'), 0)
  }
  assert.equal(await sessions(email), 2)
  await crowd
})

test.skipIf(skip)('the waiting room says what went wrong, and a click stops waiting', async (t) => {
  const { account, open } = await startRoom(t, { LOGIN_WAIT_MS: '0', TICKET_TTL_MS: '60000' })
  const { email } = await account(1)
  const slow = await account(60_000)
  const { page } = await open()
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password').fill('wrong')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').filter({ hasText: 'The e-mail address or the password is wrong.' }).waitFor()
  await page.getByLabel('E-mail address').fill(slow.email)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Stop waiting' }).click()
  await page.getByRole('heading', { name: 'Log in' }).waitFor()
  assert.equal(await page.evaluate('sessionStorage.length'), 0)
})

test.skipIf(skip)(
  'the session of the waiting room outlives the page in a cookie, for every tab, until a log out',
  async (t) => {
    const { account, open, sessions } = await startRoom(t, {})
    const { email, password } = await account(1)
    const { page, sent } = await open()
    const isInside = (tab: Page) => tab.getByRole('heading', { name: 'You are logged in' }).waitFor()
    await page.getByLabel('E-mail address').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await isInside(page)
    assert.equal(await page.evaluate('document.cookie'), '')
    await page.reload()
    await isInside(page)
    // Tabs that are opened at once.
    const tabs = await Promise.all([1, 2, 3].map(() => page.context().newPage()))
    await Promise.all(tabs.map((tab) => tab.goto(page.url())))
    await Promise.all(tabs.map(isInside))
    assert.deepEqual([await sessions(email), sent.filter((path) => path === '/v1/login').length], [1, 1])
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('heading', { name: 'Log in' }).waitFor()
    for (const tab of [page, ...tabs]) {
      await tab.reload()
      await tab.getByRole('heading', { name: 'Log in' }).waitFor()
    }
  },
)

/** What may become of an answer on its way. Each happens once; what is sent again is answered. */
const troubles = {
  delayed: async (route: Route) => {
    await sleep(2_500)
    await route.continue()
  },
  refused: (route: Route, origin: string) =>
    route.fulfill({
      status: 503,
      headers: {
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': 'true',
        'content-type': 'application/problem+json',
        'retry-after': '1',
      },
      body: JSON.stringify({ status: 503, code: 'busy', detail: 'busy' }),
    }),
  lost: (route: Route) => route.abort(),
}

for (const [trouble, befalls] of Object.entries(troubles)) {
  test.skipIf(skip)(`the waiting room traps nobody whose answers are ${trouble}`, async (t) => {
    const { account, open, origin } = await startRoom(t, { LOGIN_WAIT_MS: '0', TICKET_TTL_MS: '60000' })
    const { email, password } = await account(1)

    /** A page that meets the trouble once at this call. */
    async function met(path: string) {
      const { page } = await open(undefined, async (fresh) => {
        let times = 0
        await fresh.route(`**${path}`, async (route) => {
          const isFirst = route.request().method() !== 'OPTIONS' && times++ === 0
          await (isFirst ? befalls(route, origin) : route.continue()).catch(() => undefined)
        })
      })
      return page
    }
    const logIn = async (page: Page) => {
      await page.getByLabel('E-mail address').fill(email)
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button', { name: 'Log in' }).click()
    }
    const inside = (page: Page) => page.getByRole('heading', { name: 'You are logged in' }).waitFor()

    const waiting = async (path: string) => {
      const page = await met(path)
      await logIn(page)
      await inside(page)
    }
    /** A click on the way out ends it, whatever was under way. */
    const stopping = async (path: string) => {
      const page = await met(path)
      await logIn(page)
      await page.getByRole('button', { name: 'Stop waiting' }).click()
      await page.getByRole('heading', { name: 'Log in' }).waitFor()
      await logIn(page)
      await inside(page)
    }
    /** Nobody who has not logged in waits for anything. */
    const firstVisit = async () => {
      const page = await met('/v1/token/refresh')
      const heading = page.getByRole('heading', { name: 'Log in' })
      for (let look = 0; look < 12; look++) {
        assert.ok(await heading.isVisible(), `look ${look}`)
        await sleep(250)
      }
      await logIn(page)
      await inside(page)
    }
    const leaving = async () => {
      const page = await met('/v1/logout')
      await logIn(page)
      await inside(page)
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByRole('heading', { name: 'Log in' }).waitFor()
      await logIn(page)
      await inside(page)
    }
    const paths = ['/v1/login', '/v1/tickets/redeem']
    await Promise.all([...paths.flatMap((path) => [waiting(path), stopping(path)]), firstVisit(), leaving()])
  })
}

test.skipIf(skip)(
  'the waiting room says that logins are paused, and lets in by itself when they are resumed',
  async (t) => {
    const { account, open, spillway } = await startRoom(t, { LOGIN_WAIT_MS: '1000', TICKET_TTL_MS: '60000' })
    const { email, password } = await account(1)
    const connection = new Redis(spillway.redisUrl)
    const queue = new Queue('passwords', { connection, prefix: spillway.queuePrefix })
    t.onTestFinished(async () => {
      await queue.close()
      connection.disconnect()
    })
    await queue.pause()
    const { page } = await open()
    await page.getByLabel('E-mail address').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Logins are paused' }).waitFor()
    assert.ok(await page.locator('#numbers').isHidden(), 'a time is told')
    await queue.resume()
    await page.getByRole('heading', { name: 'You are logged in' }).waitFor()
  },
)

test.skipIf(skip)(
  'after guesses of strangers the owner gets in on a new device, and is told why it takes a while',
  async (t) => {
    const { account, open, gateway } = await startRoom(t, { GUESSES_PER_ACCOUNT: '2', CHALLENGE_BITS: '17' })
    const { email, password } = await account(1)
    const guess = () => login({ email, password: 'wrong', baseUrl: gateway.url, storage: null }).catch(() => undefined)
    for (let n = 0; n < 2; n++) await guess()
    const { page } = await open()
    await page.getByLabel('E-mail address').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await page.getByRole('status').filter({ hasText: 'proves that you are no program' }).waitFor()
    await page.getByRole('heading', { name: 'You are logged in' }).waitFor()
  },
)
