// Every object that comes out of the chart is one that Kubernetes and KEDA know, field by field.
import assert from 'node:assert/strict'
import { run } from '@spillway/infra/processes/run'
import { test } from 'vitest'
import { parse, stringify } from 'yaml'
import { chartDir, helm, manifestFaults, manifests, render, skip, valueSets } from '../chart.ts'

test.skipIf(skip)('the chart passes the linter of Helm', async () => {
  await run(helm, ['lint', '--strict', chartDir])
})

for (const valueSet of valueSets) {
  test.skipIf(skip)(`all objects of ${valueSet} are valid`, async () => {
    const yaml = await render({ valueSet })
    assert.ok(manifests(yaml).length > 5)
    assert.deepEqual(await manifestFaults(yaml), [])
  })
}

test.skipIf(skip)('a field that a kind does not have is a fault, in Kubernetes as in KEDA', async () => {
  const found = manifests(await render())
  for (const kind of ['Deployment', 'NetworkPolicy', 'ScaledObject']) {
    const manifest = found.find((one) => one.kind === kind)
    assert.ok(manifest && typeof manifest.spec === 'object')
    const misspelt = stringify({ ...manifest, spec: { ...manifest.spec, minReplicas: 1 } })
    const faults = await manifestFaults(misspelt)
    assert.match(faults.join(), /minReplicas/, kind)
  }
})

test.skipIf(skip)('objects that share a name differ in kind', async () => {
  const yaml = await render({ valueSet: 'everything.yaml' })
  const names = manifests(yaml).map(({ kind, metadata }) => `${kind}/${metadata.name}`)
  assert.deepEqual(names, [...new Set(names)])
  // The parser refuses a key that is there twice, which Helm does not.
  for (const document of yaml.split(/^---$/m)) parse(document)
})

test.skipIf(skip)('values that cannot work are refused with the way out', async () => {
  const refusals: [string[], RegExp][] = [
    [['redis.adresses={a}'], /adresses/],
    [['redis.addresses={a:1,b:2}'], /set redis.mode to sentinel or cluster/],
    [['redis.mode=sentinel'], /redis.sentinelMaster must name the master/],
    [['redis.queuePrefix=spillway'], /queuePrefix/],
    [['autoscaling.minReplicas=30'], /raise the one or lower the other/],
    [['autoscaling.redisUser.username=keda'], /the Secret that holds the password of that user/],
    [['httpRoute.enabled=true', 'config.trustProxy=10.0.0.0/8'], /the Gateway that this route belongs to/],
    [['ingress.enabled=true'], /set config.trustProxy to the addresses/],
    [['gateway.service.externalTrafficPolicy=Local'], /set gateway.service.type to NodePort or LoadBalancer/],
    [
      ['config.loginWaitMs=58000', 'config.ticketTtlMs=60000'],
      /config.loginWaitMs must be 3000 or more below config.ticketTtlMs/,
    ],
  ]
  for (const [set, sentence] of refusals) {
    await assert.rejects(render({ set }), (error: unknown) => {
      assert.ok(error instanceof Error && 'output' in error)
      assert.match(String(error.output), sentence, set.join())
      return true
    })
  }
})

const unlimited = ['limitPerAddress', 'limitRefreshPerAddress', 'limitRedeemPerAddress'].map(
  (name) => `config.${name}=0`,
)

test.skipIf(skip)('without a limit for each address nobody need know who the proxies are', async () => {
  const ingress = manifests(await render({ set: ['ingress.enabled=true', ...unlimited] }))
  assert.ok(ingress.some(({ kind }) => kind === 'Ingress'))
})
