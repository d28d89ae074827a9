import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'vitest'
import { freePort, onFreePort } from '../../src/processes/port.ts'

test('a service whose port was taken meanwhile starts on another one', async (t) => {
  const preferred = await freePort()
  const tried: number[] = []
  const started = await onFreePort(preferred, async (port) => {
    tried.push(port)
    if (port !== preferred) return port
    const quicker = createServer().listen(port, '127.0.0.1')
    await once(quicker, 'listening')
    t.onTestFinished(async () => void quicker.close())
    throw new Error('the port is taken')
  })
  assert.equal(tried.length, 2)
  assert.notEqual(started, preferred)
})

test('a service that fails for another reason is not started again', async () => {
  let starts = 0
  const start = async () => {
    starts += 1
    throw new Error('no')
  }
  await assert.rejects(onFreePort(0, start), /^Error: no$/)
  assert.equal(starts, 1)
})
