// A page by plain http in a LAN, in a real Chromium: no secure context, and so neither Web Crypto nor Web Locks.
import assert from 'node:assert/strict'
import { chromiumOptions, skipWithoutChromium as skip } from '@spillway/infra/test/pictures'
import { chromium } from 'playwright-core'
import { test } from 'vitest'
import { login } from '../../src/browser.ts'
import { servePageDoor } from '../browser/page-door.ts'
import { startSlowSpillway } from '../browser/slow-spillway.ts'

const HOST = 'shop.lan.test'
const TIMEOUT_MS = 120_000

test.skipIf(skip)(
  'a challenge is solved by the page itself, and its tokens are shared and refreshed',
  async (t) => {
    const origin = `http://${HOST}:${await servePageDoor(t)}`
    const env = { CORS_ORIGINS: origin, GUESSES_PER_ACCOUNT: '2', CHALLENGE_BITS: '14' }
    const { gateway, account } = await startSlowSpillway(t, { env })
    const { email, password } = await account(1)
    const options = { email, baseUrl: gateway.url, storage: null }
    for (let n = 0; n < 2; n++) await login({ ...options, password: 'wrong' }).catch(() => undefined)
    const resolving = `--host-resolver-rules=MAP ${HOST} 127.0.0.1`
    const browser = await chromium.launch({ ...chromiumOptions, args: [...chromiumOptions.args, resolving] })
    t.onTestFinished(() => browser.close())
    const page = await browser.newPage()
    page.setDefaultTimeout(TIMEOUT_MS)
    await page.goto(origin)
    assert.deepEqual(await page.evaluate('[isSecureContext, typeof crypto.subtle]'), [false, 'undefined'])
    const told = await page.evaluate<unknown[]>(`import('/browser.js').then(async ({ login, shareTokens }) => {
      const states = new Set()
      const options = ${JSON.stringify({ ...options, password })}
      const tokens = await login({ ...options, onProgress: ({ state }) => states.add(state) })
      const shared = shareTokens(tokens, options)
      const next = await shared.refresh()
      return [states.has('solving'), next.tokenType, next.accessToken !== tokens.accessToken]
    })`)
    assert.deepEqual(told, [true, 'Bearer', true])
  },
  TIMEOUT_MS,
)
