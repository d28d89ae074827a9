// The operators' pages, in a real Chromium. With SPILLWAY_SCREENSHOTS=true it takes the pictures of
// the README.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createLogger } from '@spillway/common/log'
import { createApiClient } from '@spillway/infra/harness/api-client'
import { createNamespace } from '@spillway/infra/harness/namespace'
import { openSpillway, withDoubles } from '@spillway/infra/harness/spillway'
import { until } from '@spillway/infra/processes/until'
import { query } from '@spillway/infra/services/query'
import { newSealKey } from '@spillway/infra/start/secrets'
import { chromiumOptions, skipWithoutChromium as skip, takePicture } from '@spillway/infra/test/pictures'
import { PasswordClient, parseKeyring } from '@spillway/queue/client'
import { newId } from '@spillway/queue/wire/id'
import axe from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, test } from 'vitest'

const OPERATOR = { user: 'operator', password: 'operators only' }
const signedIn = { httpCredentials: { username: OPERATOR.user, password: OPERATOR.password } }
/** As a proxy with single sign-on sends it. */
const viewer = { extraHTTPHeaders: { 'x-forwarded-user': 'vera', 'x-forwarded-groups': 'staff' } }
/** Other tests may keep every processor busy. */
const timeout = 120_000

type Scene = Awaited<ReturnType<typeof openScene>>

let browser: Browser
let scene: Scene
let gateway: Awaited<ReturnType<Scene['gateway']>>

beforeAll(async () => {
  if (skip !== false) return
  browser = await chromium.launch(chromiumOptions)
  scene = await openScene()
  await scene.worker()
  gateway = await scene.gateway({ OPS_PROXIES: '127.0.0.1', OPS_GROUPS: 'staff:viewer' })
})

/** A Spillway on a database and Redis keys of its own, and a client of each gateway. */
async function openScene() {
  const namespace = await createNamespace()
  const spillway = openSpillway({
    ...namespace,
    env: { ARGON2_MEMORY_KIB: '4096', ARGON2_TIME: '1', LOGIN_WAIT_MS: '60000', TICKET_TTL_MS: '120000' },
    gatewayEnv: { OPS_USER: OPERATOR.user, OPS_PASSWORD: OPERATOR.password },
    workerEnv: { WORKER_CONCURRENCY: '1', HASH_ENGINE: 'packages' },
    workerProgram: withDoubles,
  })
  return {
    ...spillway,
    async gateway(env: NodeJS.ProcessEnv = {}) {
      const gateway = await spillway.gateway({ env })
      await spillway.knowsWorkers()
      return Object.assign(gateway, { api: createApiClient(gateway.url, { timeoutMs: timeout }) })
    },
    async close(): Promise<void> {
      await spillway.close()
      await namespace.close()
    },
  }
}

/** Adds a job that no worker can open, by seal keys that are not the scene's. */
async function addForeignJob({ redisUrl, queuePrefix: prefix }: Scene): Promise<void> {
  const log = createLogger({ service: 'scene', level: 'silent' })
  const client = new PasswordClient({ redisUrl, prefix, keyring: parseKeyring(newSealKey('foreign')), log })
  await until(() => client.isReady())
  const job = { id: newId(), name: 'verify', deadline: client.now() + 60_000 } as const
  const request = { password: 'a passphrase', storedHash: null }
  await client.submit({ job, request, admitted: client.admitTo('open'), presentMs: 60_000 })
  await client.close()
}

afterAll(async () => {
  await browser?.close()
  await scene?.close()
})

async function open(path: string, options: BrowserContextOptions = signedIn, at = gateway): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  context.setDefaultTimeout(timeout)
  const page = await context.newPage()
  await page.goto(at.opsUrl + path)
  return page
}

/** An account whose "hash" takes this long without a processor; "wrong" is the wrong password. */
async function accountOf(serviceMs: number, at = scene): Promise<string> {
  const email = `${randomUUID()}@example.test`
  await query(at.databaseUrl, 'INSERT INTO users (id, email, password_hash, updated_at) VALUES ($1, $2, $3, now())', [
    randomUUID(),
    email,
    `$spillway-wait$${serviceMs}$`,
  ])
  return email
}

/** By axe: WCAG 2.2, levels A and AA, in dark and light. The page stays light. */
async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source)
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme })
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
    const { violations } = await page.evaluate<axe.AxeResults>(`axe.run({ runOnly: ${JSON.stringify(tags)} })`)
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html)}`)
    assert.deepEqual(told, [], `${page.url()}, ${colorScheme}`)
  }
}

const login = (email: string) => gateway.api.login({ email, password: 'right' })
const board = (status: string) => `/queues/queue/passwords?status=${status}`

test.skipIf(skip)('a job is seen waiting, active and completed during a spike', async () => {
  const slow = await accountOf(8_000)
  const quick = await accountOf(100)
  // The worker of one slot has two in hand.
  const spike = [login(slow), login(slow), login(slow)]
  const waiting = await open(board('waiting'))
  const jobLink = waiting.locator('a[href*="/passwords/"]').first()
  await jobLink.waitFor()
  const jobPath = String(await jobLink.getAttribute('href')).replace(/\?.*/, '')
  spike.push(...Array.from({ length: 60 }, () => login(quick)))
  await waiting.reload()
  await jobLink.waitFor()
  await takePicture(waiting, 'board-waiting')

  const job = await open(jobPath)
  await job.getByText('Process started at').waitFor()
  assert.equal(await job.getByText('Finished at').count(), 0, 'the job was not seen while it was active')
  await job.getByText('Finished at').waitFor()
  await job.getByText(/verify · answered: waited .* s, hashed in \d+\.\d s/).waitFor()

  for (const { status } of await Promise.all(spike)) assert.equal(status, 200)
  const completed = await open(board('completed'))
  await completed
    .getByText(/verify · answered: waited .*, hashed in \d+ ms/)
    .first()
    .waitFor()
  await takePicture(completed, 'board-completed')
})

test.skipIf(skip)('the live page shows a spike: depth, wait, busy slots and what fails', async () => {
  const spiked = await openScene()
  let spiking = true
  try {
    for (let worker = 0; worker < 3; worker++) await spiked.worker({ env: { WORKER_CONCURRENCY: '2' } })
    const busy = await spiked.gateway()
    const live = await open('/', signedIn, busy)
    const phone = await open('/', { ...signedIn, viewport: { width: 390, height: 844 }, colorScheme: 'dark' }, busy)
    const email = await accountOf(200, spiked)

    const caller = async (index: number) => {
      while (spiking) await busy.api.login({ email, password: index % 5 === 0 ? 'wrong' : 'right' })
    }
    const callers = Array.from({ length: 80 }, (_, index) => caller(index))
    const number = async (selector: string) =>
      Number.parseFloat((await live.locator(selector).first().textContent()) ?? '')
    await until(async () => (await number('#waiting')) > 30 && (await number('#requests')) > 5, { timeoutMs: timeout })
    await until(async () => (await number('#slots')) > 0, { timeoutMs: timeout })
    assert.equal(await live.locator('#status').textContent(), 'live')
    assert.equal(await live.locator('#workers tr').count(), 3)
    assert.equal(await live.locator('#workers .slot').count(), 6)
    for (const page of [live, phone]) await assertAccessible(page)
    await phone.emulateMedia({ colorScheme: 'dark' })

    await addForeignJob(spiked)
    const failure = phone.locator('#findings li', { hasText: 'Jobs fail at workers' })
    await failure.getByText('the sealed request does not open').waitFor()
    assert.equal(await phone.locator('#status').textContent(), 'Jobs fail at workers')
    const { y = 0 } = (await failure.boundingBox()) ?? {}
    assert.ok(y > 0 && y < 200, `on a phone the failures begin at ${y} px`)
    const width = await phone.evaluate<number>('document.documentElement.scrollWidth')
    assert.ok(width <= 390, `the page scrolls sideways on a phone: ${width} px`)
    await assertAccessible(phone)
    spiking = false
    await Promise.all(callers)
    await failure.getByRole('link').click()
    await phone.locator('h3#spillwaysealfailures').waitFor()
    assert.match(phone.url(), /\/runbooks#spillwaysealfailures$/)
    const scrolled = await phone.evaluate<number>('document.querySelector("main").scrollWidth')
    assert.ok(scrolled <= 390, `the runbooks scroll sideways on a phone: ${scrolled} px`)
    await assertAccessible(phone)
  } finally {
    spiking = false
    await spiked.close()
  }
})

test.skipIf(skip)('a failed job gives its reason, and nothing of what it carried', async () => {
  await addForeignJob(scene)

  const page = await open(board('failed'))
  await page.getByText('verify · failed').first().waitFor()
  await page.getByText('Error', { exact: true }).first().click()
  await page.getByText('the sealed request does not open').first().waitFor()
  await takePicture(page, 'board-failed')
  assert.ok(!(await page.content()).includes('foreign.'), 'the sealed request is shown')
})

test.skipIf(skip)('a viewer searches the audit, and reads why a login failed', async () => {
  const email = await accountOf(100)
  await gateway.api.login({ email, password: 'wrong' })
  // Operators give links to other systems as reasons.
  await query(
    scene.databaseUrl,
    `INSERT INTO audit_events (id, at, event, outcome, user_id, operator, reason)
     SELECT $1::uuid, now() - interval '1 hour', 'enable_account', 'ok', id, 'anna', $2::text FROM users WHERE email = $3`,
    ['00000000-0000-7000-8000-000000000000', `https://tickets.example.test/${'x'.repeat(80)}`, email],
  )
  const page = await open('/audit', viewer)
  await page.getByRole('searchbox').fill(email)
  await until(async () => {
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByText('the latest first').or(page.getByText('Nothing was found')).waitFor()
    return (await page.locator('#events tr').count()) > 1
  })
  await page.getByText('Login: wrong password, from an unknown device, 1 in a row').waitFor()
  await assertAccessible(page)
  await takePicture(page, 'audit')
  await page.setViewportSize({ width: 390, height: 844 })
  const { x = 0, width = 0 } = (await page.locator('#events td').nth(1).boundingBox()) ?? {}
  assert.ok(x >= 0 && width > 250 && x + width <= 390, `on a phone the sentence is at ${x} px, ${width} px wide`)
  const scrolled = await page.evaluate<number>('document.querySelector("[aria-label=Events]").scrollWidth')
  assert.ok(scrolled <= 390, `the events scroll sideways on a phone: ${scrolled} px`)
  await assertAccessible(page)
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.locator('#events a').first().click()
  await page.getByText('2 events, the latest first').waitFor()
  assert.equal(await page.getByRole('searchbox').inputValue(), await page.locator('#events a').first().textContent())
  await page.goto(`${gateway.opsUrl}/audit?from=2020-01-01T00:00&until=2020-01-02T00:00`)
  await page.getByText('Nothing was found').waitFor()
})

test.skipIf(skip)('a viewer is offered no retry, and refused when one is asked for all the same', async () => {
  const page = await open(board('failed'), viewer)
  await page.getByText('verify · failed').first().waitFor()
  assert.equal(await page.getByRole('button', { name: /retry/i }).count(), 0)
  const answer = await page.evaluate(async () => {
    const response = await fetch('/queues/api/queues/passwords/retry/failed', { method: 'PUT' })
    return { status: response.status, text: await response.text() }
  })
  assert.equal(answer.status, 403)
  assert.match(answer.text, /role_required/)

  // A page that was opened by somebody with another role still has the button.
  await page.route('**/queues/api/queues?*', async (route) => {
    const response = await route.fetch()
    const listed: { queues: object[] } = await response.json()
    const writable = listed.queues.map((queue) => ({ ...queue, readOnlyMode: false, allowRetries: true }))
    await route.fulfill({ response, json: { ...listed, queues: writable } })
  })
  await page.reload()
  await page.getByRole('button', { name: /retry/i }).first().click()
  await page.getByRole('button', { name: /confirm/i }).click()
  await page.getByText('The role of this operator does not allow this').waitFor()
  await page.getByRole('button', { name: /confirm/i }).waitFor({ state: 'hidden' })
  await takePicture(page, 'board-retry-refused')
})

test.skipIf(skip)('after ten wrong passwords an operator is locked out, also with the right one', async () => {
  const other = await scene.gateway()
  const statusWith = async (password: string, name?: string) => {
    const httpCredentials = { username: OPERATOR.user, password }
    const context = await browser.newContext({ httpCredentials, viewport: { width: 640, height: 160 } })
    const page = await context.newPage()
    const answer = await page.goto(`${other.opsUrl}/queues`)
    if (name !== undefined) await takePicture(page, name)
    await context.close()
    return answer?.status()
  }
  assert.equal(await statusWith(OPERATOR.password), 200)
  assert.equal(await statusWith('a guess'), 401)
  // The rest of the guesses from the same address, without a browser's patience.
  const headers = { authorization: `Basic ${btoa(`${OPERATOR.user}:another guess`)}` }
  for (let guess = 1; guess < 10; guess++) assert.equal((await fetch(other.opsUrl, { headers })).status, 401)
  assert.equal(await statusWith(OPERATOR.password, 'board-locked-out'), 429)
})
