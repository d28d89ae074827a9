// The network that a client is counted by.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { networkOf, storedNetworkOf } from '../../src/http/requests.ts'

const networks: [client: string, network: string][] = [
  ['192.0.2.1', '192.0.2.1'],
  ['192.0.2.1:4711', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['[::ffff:192.0.2.1]:4711', '192.0.2.1'],
  ['::ffff:c000:201', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2::6', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2:3:4:5:6]:4711', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2:3:4:5:6]', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['2001:db8::/64', '2001:db8:0:0::/64'],
  ['2001:db8:0:0::/64', '2001:db8:0:0::/64'],
  ['2001:db8:0:0:1::', '2001:db8:0:0::/64'],
  ['1::5:6:7:8:9:a', '1:0:5:6::/64'],
  // What only looks like an IPv4 address within an IPv6 one.
  ['1:2::ffff:5', '1:2:0:0::/64'],
  ['::ffff:5:6:7', '0:0:0:0::/64'],
  ['1::6:7:8:9:a', '1:0:0:6::/64'],
  ['2001:db8:1::5:6', '2001:db8:1:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['1::', '1:0:0:0::/64'],
  ['::5:6:7:8:9', '0:0:0:5::/64'],
  ['fe80::1', 'fe80:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  // Not everything that proxies write is an address.
  ['Unknown', 'unknown'],
  ['_hidden:80', '_hidden'],
  ['', ''],
  ['a:b:c', 'a:b:c'],
  ['[192.0.2.1', '[192.0.2.1'],
  ['192.0.2.1:', '192.0.2.1:'],
  ['x[::1]', 'x[::1]'],
  ['[::1]x', '[::1]x'],
]

for (const [client, network] of networks) {
  test(`"${client}" counts as "${network}"`, () => assert.equal(networkOf(client), network))
}

test('a network is stored as printable ASCII of bounded length, whatever a proxy sends', () => {
  assert.equal(storedNetworkOf('2001:DB8:1:2::6'), '2001:db8:1:2::/64')
  assert.equal(storedNetworkOf('[192.0.2.1]:4711'), '192.0.2.1')
  assert.equal(storedNetworkOf(' !un\0kno\nwn~ ü'), '!unknown~')
  assert.equal(storedNetworkOf('x'.repeat(65)), 'x'.repeat(64))
})
