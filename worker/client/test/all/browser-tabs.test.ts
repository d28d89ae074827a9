// Tabs of one profile in a real Chromium share the tokens of a session: one of them refreshes for all.
import assert from 'node:assert/strict'
import { chromiumOptions, skipWithoutChromium as skip } from '@spillway/infra/test/pictures'
import { chromium } from 'playwright-core'
import { test } from 'vitest'
import { servePageDoor } from '../browser/page-door.ts'
import { startSlowSpillway } from '../browser/slow-spillway.ts'

const TABS = 5
const TIMEOUT_MS = 120_000

test.skipIf(skip)(
  'five tabs that refresh at once, round after round, send one request a round and have the same tokens',
  async (t) => {
    const origin = `http://127.0.0.1:${await servePageDoor(t)}`
    const { gateway, account } = await startSlowSpillway(t, { env: { CORS_ORIGINS: origin, REFRESH_GRACE_S: '0' } })
    const credentials = await account(1)
    const browser = await chromium.launch(chromiumOptions)
    t.onTestFinished(() => browser.close())
    const context = await browser.newContext()
    context.setDefaultTimeout(TIMEOUT_MS)
    let refreshes = 0
    context.on('request', (request) => {
      if (request.method() === 'POST' && request.url().endsWith('/v1/token/refresh')) refreshes += 1
    })
    const tabs = await Promise.all(Array.from({ length: TABS }, () => context.newPage()))
    await Promise.all(tabs.map((tab) => tab.goto(origin)))

    const options = JSON.stringify({ baseUrl: gateway.url, storage: null })
    const first = JSON.stringify({ ...credentials, baseUrl: gateway.url, storage: null })
    const tokens = await tabs[0]?.evaluate<object>(`import('/browser.js').then(({ login }) => login(${first}))`)
    const share = `import('/browser.js').then(({ shareTokens }) => {
    globalThis.told = 0
    globalThis.shared = shareTokens(${JSON.stringify(tokens)}, { ...${options}, onTokens: () => { globalThis.told += 1 } })
  })`
    await Promise.all(tabs.map((tab) => tab.evaluate(share)))

    for (let round = 1; round <= 3; round += 1) {
      const used = JSON.stringify(await tabs[0]?.evaluate<object>('shared.current()'))
      // Without a grace a second request with the same token would end the session.
      const given = await Promise.all(
        tabs.map((tab) =>
          tab.evaluate<string>(
            `Promise.all([shared.refresh(${used}), shared.refresh(${used})]).then(([one]) => one.refreshToken)`,
          ),
        ),
      )
      assert.equal(new Set(given).size, 1, `round ${round}`)
      assert.equal(refreshes, round)
    }
    assert.deepEqual(await Promise.all(tabs.map((tab) => tab.evaluate('told'))), Array(TABS).fill(3))

    // A tab that did not ask has the tokens too, and goes on with them.
    await tabs[0]?.evaluate('shared.refresh()')
    const last = await tabs[4]?.evaluate<string>('shared.refresh().then(({ accessToken }) => accessToken)')
    const me = await fetch(`${gateway.url}/v1/me`, { headers: { authorization: `Bearer ${last}` } })
    assert.equal(me.status, 200)
  },
  TIMEOUT_MS,
)
