// What KEDA is told, against what it understands.
import assert from 'node:assert/strict'
import { runInNewContext } from 'node:vm'
import { parseRedisServers } from '@spillway/queue/redis/servers'
import { test } from 'vitest'
import { manifests } from '../../src/chart.ts'
import { render, rendered, renderSet, schemasDir, skip, specOf, valueSets } from '../programs.ts'
import { readScalers, type Trigger, triggerFaults } from '../trigger-metadata.ts'

interface ScaledObject {
  triggers: (Trigger & { authenticationRef?: { name: string }; metricType?: string })[]
  fallback: { replicas: number; behavior: string; failureThreshold: number }
  minReplicaCount: number
  pollingInterval?: number
  cooldownPeriod?: number
  advanced: { scalingModifiers?: { formula: string; target: string } }
}

async function scaledObject(set: string[] = []): Promise<ScaledObject> {
  return specOf((await rendered('ScaledObject', { set }))[0])
}

for (const valueSet of valueSets) {
  test.skipIf(skip)(`every trigger of ${valueSet} has what its scaler takes, and nothing else`, async () => {
    const scalers = await readScalers(schemasDir)
    const found = manifests(await renderSet(valueSet))
    for (const manifest of found.filter(({ kind }) => kind === 'ScaledObject')) {
      for (const trigger of specOf<ScaledObject>(manifest).triggers) {
        const login = found.find(
          ({ kind, metadata }) => kind === 'TriggerAuthentication' && metadata.name === trigger.authenticationRef?.name,
        )
        const references = login ? specOf<{ secretTargetRef: { parameter: string }[] }>(login).secretTargetRef : []
        const given = references.map(({ parameter }) => parameter)
        assert.deepEqual(triggerFaults(scalers, trigger, given), [])
      }
    }
  })
}

test.skipIf(skip)('a misspelt, a missing and an unreadable field of a trigger are found', async () => {
  const scalers = await readScalers(schemasDir)
  const faults = triggerFaults(scalers, { type: 'redis', metadata: { adress: 'redis:6379', cert: 'x' } }, ['listName'])
  assert.deepEqual(faults, [
    'redis takes no metadata adress.',
    'redis takes no metadata cert.',
    'redis takes no authentication listName.',
  ])
  assert.deepEqual(triggerFaults(scalers, { type: 'redis', metadata: { address: 'redis:6379' } }), [
    'redis needs listName.',
  ])
  assert.deepEqual(triggerFaults(scalers, { type: 'bullmq', metadata: {} }), ['KEDA has no scaler bullmq.'])
})

test.skipIf(skip)('waiting and running jobs are added up, and the target is a whole number of slots', async () => {
  const { advanced, triggers } = await scaledObject(['worker.cores=4', 'autoscaling.jobsPerSlot=3'])
  assert.deepEqual(
    advanced.scalingModifiers?.formula.split(' + '),
    triggers.map(({ name }) => name),
  )
  assert.equal(advanced.scalingModifiers?.target, '12')
})

test.skipIf(skip)(
  'in a schedule there are its workers at least, more where there are more jobs, and outside of it what the jobs need',
  async () => {
    const set = [
      ...['worker.cores=2', 'autoscaling.jobsPerSlot=4'],
      ...[0, 1].flatMap((n) =>
        ['start=0 8 * * *', 'end=0 9 * * *', 'timezone=UTC', `replicas=${10 + n}`].map(
          (one) => `autoscaling.schedules[${n}].${one}`,
        ),
      ),
    ]
    const { advanced, triggers } = await scaledObject(set)
    const { formula = '', target } = advanced.scalingModifiers ?? {}
    const workers = (values: Record<string, number>): number => {
      const none = Object.fromEntries(triggers.map(({ name = '' }) => [name, 0]))
      return Math.ceil(Number(runInNewContext(formula, { max: Math.max, ...none, ...values })) / Number(target))
    }
    const names = triggers.filter(({ type }) => type === 'cron').map(({ name }) => name)
    assert.deepEqual(names, ['schedule0', 'schedule1'])
    assert.equal(workers({ schedule0: 10 }), 10)
    assert.equal(workers({ schedule0: 10, schedule1: 11, waiting: 3 }), 11)
    assert.equal(workers({ schedule0: 10, waiting: 80, deferred: 7, active: 2 }), 12)
    assert.equal(workers({ waiting: 5, active: 4 }), 2)
    assert.equal(workers({}), 0)
  },
)

test.skipIf(skip)('a schedule that cannot be kept is refused with the way out', async () => {
  const schedule = (change: Record<string, string | number>) =>
    Object.entries({ start: '0 8 * * *', end: '0 9 * * *', timezone: 'UTC', replicas: 5, ...change }).map(
      ([name, value]) => `autoscaling.schedules[0].${name}=${value}`,
    )
  assert.equal((await scaledObject(schedule({}))).triggers.at(-1)?.metadata.desiredReplicas, '5')
  await assert.rejects(scaledObject(schedule({ replicas: 21 })), /more replicas than autoscaling.maxReplicas/)
  await assert.rejects(scaledObject(schedule({ end: '0 8 * * *' })), /a start that is its end/)
  await assert.rejects(scaledObject(schedule({ start: 'at eight' })), /schedules/)
})

test.skipIf(skip)(
  'of several Redis servers each has its triggers, and the formula adds up those that answer',
  async () => {
    const { advanced, triggers, fallback } = specOf<ScaledObject>(
      manifests(await renderSet('several.yaml')).find(({ kind }) => kind === 'ScaledObject'),
    )
    const names = [0, 1, 2].flatMap((n) => [`active${n}`, `deferred${n}`, `waiting${n}`])
    assert.deepEqual(
      triggers.map(({ name }) => name),
      names,
    )
    const sum = names.map((name) => `(${name} ?? 0)`).join(' + ')
    // With all away there is no value, in place of 0.
    assert.equal(advanced.scalingModifiers?.formula, `0 * (active0 ?? active1 ?? active2) + ${sum}`)
    assert.deepEqual(fallback, { failureThreshold: 0, behavior: 'scalingModifiers', replicas: 1 })
    const addresses = ['redis-a.login.svc:6379', 'redis-b.data.svc:6380', 'redis-c.login.svc:6379']
    assert.deepEqual(
      triggers.map(({ metadata }) => metadata.address),
      addresses.flatMap((address) => [address, address, address]),
    )
  },
)

test.skipIf(skip)('of several Redis pods are given a list that they understand, with what drains', async () => {
  const rendered = await renderSet('several.yaml')
  const [, urls = ''] = /name: REDIS_URL\n\s+value: "(.*)"/.exec(rendered) ?? []
  const servers = parseRedisServers(urls.replaceAll('$(REDIS_PASSWORD)', 'secret'))
  assert.deepEqual(
    servers.map(({ url, draining }) => `${draining} ${url}`),
    [
      'false redis://:secret@redis-a/2',
      'false redis://:secret@redis-b.data.svc:6380/2',
      'true redis://:secret@redis-c/2',
    ],
  )
  await assert.rejects(render({ set: ['redis.draining={redis:6379}'] }), /redis\.draining/)
})

test.skipIf(skip)('the fallback never lets go of the last worker', async () => {
  const { fallback, minReplicaCount } = await scaledObject(['autoscaling.minReplicas=0'])
  assert.equal(minReplicaCount, 0)
  assert.deepEqual(fallback, { failureThreshold: 3, behavior: 'currentReplicas', replicas: 1 })
})

test.skipIf(skip)('KEDA, in another namespace, is given addresses that resolve there', async () => {
  const { triggers } = await scaledObject(['redis.addresses={redis}'])
  assert.equal(triggers[0]?.metadata.address, 'redis.login.svc:6379')
  const elsewhere = await scaledObject(['redis.addresses={redis.data.svc:6380}'])
  assert.equal(elsewhere.triggers[0]?.metadata.address, 'redis.data.svc:6380')
})

const predictedWait = 'autoscaling.trigger=predictedWait'
const prometheus = 'autoscaling.predictedWait.serverAddress=http://prometheus:9090'

test.skipIf(skip)(
  'without Prometheus KEDA reads the greatest predicted wait from the ops ports of all gateways',
  async () => {
    const set = [
      predictedWait,
      'autoscaling.predictedWait.targetSeconds=2',
      'autoscaling.predictedWait.authentication=mesh',
    ]
    const { triggers } = await scaledObject(set)
    assert.deepEqual(triggers, [
      {
        type: 'metrics-api',
        name: 'predictedWait',
        metricType: 'Value',
        metadata: {
          url: 'http://spillway-gateway-ops.login.svc:9464/metrics',
          format: 'prometheus',
          valueLocation: 'spillway_predicted_wait_seconds',
          aggregateFromKubeServiceEndpoints: 'true',
          aggregationType: 'max',
          targetValue: '2',
        },
        authenticationRef: { name: 'mesh' },
      },
    ])
    const [service] = (await rendered('Service', { set })).filter(
      ({ metadata }) => metadata.name === 'spillway-gateway-ops',
    )
    assert.equal(specOf<{ ports: { port: number }[] }>(service).ports[0]?.port, 9464)
    const mayReadGateways = async (more: string[]) => {
      const policies = await rendered('NetworkPolicy', { set: more })
      return /"kubernetes.io\/metadata.name":"keda"/.test(
        JSON.stringify(policies.find(({ metadata }) => metadata.name === 'spillway-ops')),
      )
    }
    assert.deepEqual([await mayReadGateways(set), await mayReadGateways([...set, prometheus])], [true, false])
  },
)

test.skipIf(skip).each([
  ['2.17.3', [predictedWait, prometheus], /Value.*takes KEDA 2\.18 or newer, and the cluster has 2\.17\.3/],
  ['v2.18.0', [predictedWait, prometheus], undefined],
  ['2.19.0', [predictedWait], /asks all gateways.*takes KEDA 2\.20 or newer/],
  ['2.20.1', [predictedWait], undefined],
  ['2.19.0', ['redis.mode=several', 'redis.addresses={a,b}'], /redis\.mode several.*takes KEDA 2\.20 or newer/],
  ['2.20.0', ['redis.mode=several', 'redis.addresses={a,b}'], undefined],
  ['2.17.0', [], undefined],
])('with KEDA %s and %j: refused where KEDA would refuse it', async (version, set, sentence) => {
  const found = scaledObject([...set, `autoscaling.kedaVersion=${version}`])
  if (sentence) await assert.rejects(found, sentence)
  else assert.ok((await found).triggers.length > 0)
})

test.skipIf(skip)('what has no effect is left out, as KEDA would warn of it at every upgrade', async () => {
  const periods = async (set: string[]) => {
    const { pollingInterval, cooldownPeriod } = await scaledObject(set)
    return [pollingInterval, cooldownPeriod]
  }
  assert.deepEqual(await periods([]), [5, undefined])
  assert.deepEqual(await periods(['autoscaling.minReplicas=0']), [5, 300])
  assert.deepEqual(await periods([predictedWait, prometheus]), [undefined, undefined])
})
