import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createApiClient } from '@spillway/infra/harness/api-client'
import { listening } from '@spillway/infra/processes/port'
import { describe, test, vi } from 'vitest'
import { openLoop } from '../../load/open-loop.ts'

describe('open loop', () => {
  test('requests keep leaving while no answer comes', async () => {
    let answer = () => {}
    const answered = new Promise<void>((resolve) => {
      answer = resolve
    })
    let open = 0
    let mostOpen = 0
    const sent = openLoop({
      rateAt: () => 400,
      durationMs: 500,
      send: async () => {
        mostOpen = Math.max(mostOpen, ++open)
        if (open === 190) answer()
        await answered
      },
    })
    assert.ok(Math.abs((await sent) - 200) <= 1, `sent ${await sent}`)
    assert.ok(mostOpen >= 190)
  })

  test('a generator that was held up counts the delay as latency', async () => {
    const heldUpMs = 150
    const lateMs: number[] = []
    let held = false
    await openLoop({
      rateAt: () => 100,
      durationMs: 400,
      send: async (dueMs) => {
        lateMs.push(performance.now() - dueMs)
        if (held) return
        held = true
        for (const endMs = performance.now() + heldUpMs; performance.now() < endMs; );
      },
    })
    assert.ok(Math.max(...lateMs) > heldUpMs * 0.8, `at most ${Math.max(...lateMs)} ms late`)
    assert.ok(Math.abs(lateMs.length - 40) <= 1)
  })

  test('the rate follows the moment', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    const dueMs: number[] = []
    const startMs = performance.now()
    const over = openLoop({
      rateAt: (elapsedMs) => (elapsedMs < 200 ? 50 : 500),
      durationMs: 400,
      send: async (at) => {
        dueMs.push(at - startMs)
      },
    })
    await vi.advanceTimersByTimeAsync(500)
    vi.useRealTimers()
    await over
    const early = dueMs.filter((ms) => ms < 200).length
    // The tenth is due at 200 ms.
    assert.equal(early, 9)
    assert.ok(Math.abs(dueMs.length - early - 100) <= 1, `${dueMs.length - early} in the loud part`)
  })
})

describe('client', () => {
  test('an answer that does not come is a time-out, a refused connection an error', async () => {
    const silent = createServer(() => {})
    const url = `http://127.0.0.1:${await listening(silent)}`
    const hasty = createApiClient(url, { timeoutMs: 100 })
    assert.equal((await hasty.get('/')).failure, 'timeout')
    hasty.close()
    silent.closeAllConnections()
    silent.close()
    await once(silent, 'close')
    const patient = createApiClient(url, { timeoutMs: 60_000 })
    assert.equal((await patient.get('/')).failure, 'error')
    patient.close()
  })
})
