// The connections that network policies allow.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { rendered, skip, specOf } from '../chart.ts'

interface Rule {
  from?: unknown[]
  to?: unknown[]
  ports?: { port: number | string; protocol?: string }[]
}

interface Policy {
  ingress?: Rule[]
  egress?: Rule[]
}

/** A policy of the chart, by the end of its name. */
async function policy(name: string, set: string[]): Promise<Policy> {
  const found = await rendered('NetworkPolicy', { set })
  return specOf(found.find(({ metadata }) => metadata.name === `spillway-${name}`))
}

function portsOf({ ports = [] }: Rule): (number | string)[] {
  return ports.map(({ port }) => port)
}

test.skipIf(skip)("the release's tests reach the gateway where they are told that it is", async () => {
  const ports: [string, number][] = [
    ['https://login.example.com', 443],
    ['http://login.example.com/', 80],
    ['http://10.0.0.1:8080', 8080],
    ['https://[2001:db8::1]:8443/', 8443],
    ['https://[2001:db8::1]', 443],
  ]
  for (const [url, port] of ports) {
    const { egress = [] } = await policy('tests', [`tests.gatewayUrl=${url}`])
    assert.ok(
      egress.some((rule) => rule.to === undefined && portsOf(rule).join() === String(port)),
      url,
    )
  }
  assert.deepEqual((await policy('tests', [])).egress?.flatMap(portsOf), ['http'])
})

const sentinel = ['redis.mode=sentinel', 'redis.sentinelMaster=mymaster', 'redis.addresses={sentinel}']

test.skipIf(skip)('sentinels lead to a master, which is let through as well', async () => {
  const ports = async (set: string[]) => (await policy('to-redis', set)).egress?.flatMap(portsOf)
  assert.deepEqual(await ports(sentinel), [26379, 6379])
  assert.deepEqual(await ports([...sentinel, 'networkPolicy.redisPorts={6380}']), [26379, 6380])
  assert.deepEqual(await ports([]), [6379])
})

test.skipIf(skip)('a Redis that is closed to others is open to itself, on any port', async () => {
  const { ingress = [] } = await policy('redis', [...sentinel, 'networkPolicy.redisPods.matchLabels.app=redis'])
  const among = ingress.filter(({ ports }) => ports === undefined)
  assert.deepEqual(among, [{ from: [{ podSelector: { matchLabels: { app: 'redis' } } }] }])
  assert.deepEqual(ingress.filter(({ ports }) => ports !== undefined).map(portsOf), [[26379, 6379]])
})

test.skipIf(skip)('the service API is closed until it is on, and then open to those that are named', async () => {
  const on = ['serviceApi.enabled=true']
  const { ingress = [] } = await policy('service-api', on)
  assert.deepEqual(ingress, [{ from: [{ podSelector: {} }], ports: [{ port: 'service' }] }])
  const [gateway] = await rendered('Deployment', { set: on })
  assert.match(JSON.stringify(gateway), /"SERVICE_KEYS","valueFrom":\{"secretKeyRef":\{[^}]*"key":"service"/)
  const off = [...(await rendered('NetworkPolicy', {})), ...(await rendered('Service', {}))]
  assert.ok(off.every(({ metadata }) => metadata.name !== 'spillway-service-api'))
  assert.doesNotMatch(JSON.stringify(await rendered('Deployment', {})), /SERVICE_KEYS|"service"/)
})
