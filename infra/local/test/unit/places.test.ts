import assert from 'node:assert/strict'
import { test } from 'vitest'
import { placeIn } from '../../src/start/places.ts'

test("a member's address is read from its ready line, port 80 and IPv6 included", () => {
  const gateway = placeIn({ url: 'http://127.0.0.1:80', opsUrl: 'http://[::1]:9464' }, 'gateway 1')
  assert.deepEqual(gateway, { name: 'gateway 1', port: 80, opsPort: 9464 })
  const service = { url: 'http://127.0.0.1:3000', opsUrl: 'http://127.0.0.1:1', serviceUrl: 'http://127.0.0.1:3100' }
  assert.equal(placeIn(service, 'gateway 1').servicePort, 3100)
  assert.deepEqual(placeIn({ opsUrl: 'http://127.0.0.1:9465' }, 'worker 1'), { name: 'worker 1', opsPort: 9465 })
})
