import assert from 'node:assert/strict'
import { test } from 'vitest'
import { parseRedisServers } from '../../src/redis/servers.ts'

const idsOf = (urls: string) => parseRedisServers(urls).map(({ id }) => id)

test('one Redis is a list of one, with its URL as it is', () => {
  for (const url of ['redis://cache', 'redis+sentinel://one, two:26380/main', 'rediss+cluster://:a=b@one,two']) {
    const servers = parseRedisServers(url)
    assert.equal(servers.length, 1)
    assert.equal(servers[0].url, url)
    assert.equal(servers[0].draining, false)
  }
})

test('several are separated by any white space, each in a form of its own', () => {
  const urls = [
    'redis://:a@one',
    'redis+sentinel://b1, b2/main/3',
    'rediss+cluster://c1,c2:7000',
    'unix:///s',
    'valkey://[::1]:1/2',
  ]
  const parsed = parseRedisServers(urls.join(' \n\t')).map(({ url }) => url)
  assert.deepEqual(parsed, urls)
})

test('a Redis server is named by its hosts: not by its place, user, password, or the order of its nodes', () => {
  const [one, two] = idsOf('redis://one redis+sentinel://s1,s2/main')
  assert.notEqual(one, two)
  // Tickets have it, and outlive the version that made them: the beginning of the SHA-256 of `one:6379`.
  assert.equal(one, 'f8098ef1712a')
  assert.deepEqual(
    idsOf('rediss+sentinel://ann:new@s2,s1/main redis://ann:hush@one:6379/0 redis://three').slice(0, 2),
    [two, one],
  )
  assert.notEqual(idsOf('redis://one/1')[0], one)
})

test('its address says where it is, and holds no user and no password', () => {
  const addresses = parseRedisServers(
    'redis://ann:hush@one/4 redis+sentinel://ann:hush@s1/main?sentinelPassword=hush redis://[::1]:1/2 redis+cluster://c2:7000,c1 unix://ann:hush@/run/s?db=1',
  )
  const named = addresses.map(({ address }) => address)
  assert.deepEqual(named, ['one:6379/4', 's1:26379/main', '[::1]:1/2', 'c1:6379,c2:7000', '/run/s/1'])
})

test("a server's URL is read again by its place, and stays while the setting does not name it", () => {
  let setting = 'redis://ann:old@one redis://two'
  const [one, two] = parseRedisServers(setting, () => setting)
  setting = 'redis://bob:new@one:6379'
  assert.deepEqual([one.currentUrl(), two?.currentUrl()], ['redis://bob:new@one:6379', 'redis://two'])
})

test('a drained one keeps its name', () => {
  const [, two] = parseRedisServers('redis://one drain:redis://two')
  assert.equal(two?.draining, true)
  assert.equal(two?.url, 'redis://two')
  assert.deepEqual(idsOf('redis://one drain:redis://two'), idsOf('redis://one redis://two'))
})

test('what cannot be meant is refused in one sentence that repeats nothing of it', () => {
  const wrong = [
    'redis://ann:hush@cache redis://other@cache:6379/0',
    'drain:redis://ann:hush@cache',
    'drain:redis://hush drain:redis://cache',
    'redis://hush http://cache',
    'redis://hush,redis://cache',
    'redis://hush;redis://cache',
    'redis://hush redis://cache:0',
    'redis://hush drain: redis://cache',
    ' redis://hush redis://cache',
    '',
  ]
  for (const urls of wrong) {
    assert.throws(
      () => parseRedisServers(urls),
      ({ message }: Error) => {
        assert.match(message, /^REDIS_URL [^\n]+$/, urls)
        assert.doesNotMatch(message, /ann|cache|hush/, urls)
        return true
      },
      urls,
    )
  }
})
