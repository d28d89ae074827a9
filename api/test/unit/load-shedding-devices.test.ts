// A gateway that is behind tells known devices by the heads of their requests.
import assert from 'node:assert/strict'
import { fastify } from 'fastify'
import { test } from 'vitest'
import { LoadShedder, type Priority } from '../../src/plugins/load-shedding/load-shedder.ts'
import { loadSheddingPlugin } from '../../src/plugins/load-shedding/plugin.ts'
import { GatewayMetrics } from '../../src/plugins/metrics.ts'

test('requests of known devices go first while a gateway is behind, and then alone', async (t) => {
  let isBehind = false
  const asked: Priority[] = []
  class Observed extends LoadShedder {
    override isBehind(): boolean {
      return isBehind
    }
    override admits(priority: Priority): boolean {
      asked.push(priority)
      return true
    }
    override begin(priority: Priority, isGone: () => boolean) {
      asked.push(priority)
      return super.begin(priority, isGone)
    }
  }
  const app = fastify()
  t.onTestFinished(() => app.close())
  await app.register(loadSheddingPlugin, {
    shedder: new Observed(10),
    metrics: new GatewayMetrics([]),
    bodyLimitBytes: 1_000,
    deviceOf: ({ 'x-device': device }) => (typeof device === 'string' ? device : undefined),
  })
  app.get('/new', async () => 'done')
  app.get('/light', { config: { isLight: true } }, async () => 'done')
  app.get('/promised', { config: { priority: 'promised' } }, async () => 'done')
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  async function prioritiesOf(path: string, headers: Record<string, string> = {}): Promise<Priority[]> {
    assert.equal((await fetch(url + path, { headers })).status, 200)
    return asked.splice(0)
  }

  assert.deepEqual(await prioritiesOf('/new', { 'x-device': 'one' }), ['new', 'new'])
  assert.deepEqual(await prioritiesOf('/light'), ['new', 'new'])
  isBehind = true
  assert.deepEqual(await prioritiesOf('/new'), ['new', 'new'])
  assert.deepEqual(await prioritiesOf('/new', { 'x-device': 'one' }), ['known', 'known'])
  // Paths with a wildcard are known only when Fastify has found the route.
  assert.deepEqual(await prioritiesOf('/light'), ['new', 'known'])
  assert.deepEqual(await prioritiesOf('/promised', { 'x-device': 'two' }), ['promised', 'promised'])
})
