// How the chart scales workers: what KEDA is told, against what it understands, and an autoscaler of
// Kubernetes where there is no KEDA.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { queueKey } from '@spillway/queue/keys'
import { test } from 'vitest'
import { manifests, render, rendered, schemasDir, skip, specOf, valueSets } from '../chart.ts'

interface Trigger {
  type: string
  name: string
  metadata: Record<string, string>
  authenticationRef?: { name: string }
}

interface ScaledObject {
  triggers: Trigger[]
  fallback: unknown
  minReplicaCount: number
  cooldownPeriod?: number
  advanced: {
    scalingModifiers: { formula: string; target: string }
    horizontalPodAutoscalerConfig: { behavior: object }
  }
}

async function scaledObject(set: string[] = []): Promise<ScaledObject> {
  return specOf((await rendered('ScaledObject', { set }))[0])
}

/** One parameter of a scaler, as KEDA's generated schema has it. */
interface Parameter {
  name: string
  optional?: boolean
  default?: string
  metadataVariableReadable?: boolean
  triggerAuthenticationVariableReadable?: boolean
}

/** The faults of a trigger: KEDA passes over a misspelt field in silence. */
async function faults({ type, metadata }: Trigger, authentication: string[]): Promise<string[]> {
  const file = await readFile(join(schemasDir, 'scalers.json'), 'utf8')
  const { scalers }: { scalers: { type: string; parameters: Parameter[] }[] } = JSON.parse(file)
  const parameters = scalers.find((one) => one.type === type)?.parameters
  if (parameters === undefined) return [`KEDA has no scaler ${type}`]
  const find = (name: string) => parameters.find((one) => one.name === name)
  const given = [...Object.keys(metadata), ...authentication]
  return [
    ...Object.keys(metadata).filter((name) => !find(name)?.metadataVariableReadable),
    ...authentication.filter((name) => !find(name)?.triggerAuthenticationVariableReadable),
    ...parameters
      .filter((one) => one.optional !== true && one.default === undefined && !given.includes(one.name))
      .map(({ name }) => `no ${name}`),
  ]
}

for (const valueSet of valueSets) {
  test.skipIf(skip)(`every trigger of ${valueSet} has what its scaler takes, and nothing else`, async () => {
    const found = manifests(await render({ valueSet }))
    const login = found.find(({ kind }) => kind === 'TriggerAuthentication')
    const secrets = login ? specOf<{ secretTargetRef: { parameter: string }[] }>(login).secretTargetRef : []
    for (const manifest of found.filter(({ kind }) => kind === 'ScaledObject')) {
      for (const trigger of specOf<ScaledObject>(manifest).triggers) {
        const hasLogin = login !== undefined && trigger.authenticationRef?.name === login.metadata.name
        const given = hasLogin ? secrets.map(({ parameter }) => parameter) : []
        assert.deepEqual(await faults(trigger, given), [], trigger.name)
      }
    }
  })
}

/** The workers that KEDA asks for when its triggers have these values, and the others 0. */
function workers({ triggers, advanced }: ScaledObject, values: Record<string, number>): number {
  const { formula, target } = advanced.scalingModifiers
  const none = Object.fromEntries(triggers.map(({ name }) => [name, 0]))
  return Math.ceil(Number(runInNewContext(formula, { max: Math.max, ...none, ...values })) / Number(target))
}

test.skipIf(skip)(
  'KEDA watches the keys in which jobs wait and run: a key that nobody makes reads as empty for ever',
  async () => {
    const { triggers } = await scaledObject(['redis.queuePrefix=\\{shop\\}'])
    const watched = triggers.map(({ name, metadata }) => [name, metadata.listName])
    const keys = { open: 'wait', ticketed: 'prioritized', active: 'active' } as const
    const expected = Object.entries(keys).map(([name, part]) => [name, queueKey('{shop}', part)])
    assert.deepEqual(watched.sort(), expected.sort())
  },
)

test.skipIf(skip)('waiting and running jobs are added up, and the target is a whole number of slots', async () => {
  const found = await scaledObject(['worker.cores=4', 'autoscaling.jobsPerSlot=3'])
  assert.equal(found.advanced.scalingModifiers.target, '12')
  assert.equal(workers(found, {}), 0)
  assert.equal(workers(found, { active: 12 }), 1)
  assert.equal(workers(found, { active: 12, open: 13, ticketed: 12 }), 4)
})

const cron = [
  'type=cron',
  'name=mondays',
  'metadata.timezone=UTC',
  'metadata.start=0 8 * * 1',
  'metadata.end=0 9 * * 1',
]
const schedule = [...cron, 'metadata.desiredReplicas=10'].map((one) => `autoscaling.extraTriggers[0].${one}`)

test.skipIf(skip)(
  'a further trigger asks for a number of workers, and the queue for more where there are more jobs',
  async () => {
    const found = await scaledObject([...schedule, 'worker.cores=2', 'autoscaling.jobsPerSlot=4'])
    assert.equal(found.triggers.at(-1)?.type, 'cron')
    assert.equal(workers(found, { mondays: 10 }), 10)
    assert.equal(workers(found, { mondays: 10, open: 3 }), 10)
    assert.equal(workers(found, { mondays: 10, open: 80, ticketed: 7, active: 2 }), 12)
    assert.equal(workers(found, { open: 5, active: 4 }), 2)
    await assert.rejects(scaledObject([...schedule, 'autoscaling.extraTriggers[0].name=active']), /choose another/)
    await assert.rejects(scaledObject([...schedule, 'autoscaling.extraTriggers[0].name=on-mondays']), /extraTriggers/)
  },
)

test.skipIf(skip)('the fallback never lets go of the last worker', async () => {
  const { fallback, minReplicaCount, cooldownPeriod } = await scaledObject(['autoscaling.minReplicas=0'])
  assert.deepEqual([minReplicaCount, cooldownPeriod], [0, 300])
  assert.deepEqual(fallback, { failureThreshold: 3, behavior: 'currentReplicas', replicas: 1 })
})

test.skipIf(skip)('KEDA, in another namespace, is given addresses that resolve there', async () => {
  const address = async (given: string) =>
    (await scaledObject([`redis.addresses={${given}}`])).triggers[0]?.metadata.address
  assert.equal(await address('redis'), 'redis.login.svc:6379')
  assert.equal(await address('redis.data.svc:6380'), 'redis.data.svc:6380')
})

test.skipIf(skip)('without KEDA an autoscaler of Kubernetes goes by processor time, as quickly', async () => {
  const mode = ['autoscaling.mode=cpu', 'redis.password.secret=redis']
  for (const kind of ['ScaledObject', 'TriggerAuthentication'])
    assert.deepEqual(await rendered(kind, { set: mode }), [])
  const [autoscaler] = await rendered('HorizontalPodAutoscaler', { set: mode })
  // While an upgrade changes to mode keda, both are there.
  assert.deepEqual(autoscaler?.metadata.annotations, { 'validations.keda.sh/hpa-ownership': 'false' })
  const { behavior, metrics, scaleTargetRef } = specOf<Record<string, unknown>>(autoscaler)
  assert.deepEqual(scaleTargetRef, { apiVersion: 'apps/v1', kind: 'Deployment', name: 'spillway-worker' })
  const cpu = { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } }
  assert.deepEqual(metrics, [{ type: 'Resource', resource: cpu }])
  assert.deepEqual(behavior, (await scaledObject()).advanced.horizontalPodAutoscalerConfig.behavior)
  await assert.rejects(render({ set: [...mode, 'autoscaling.minReplicas=0'] }), /only KEDA scales to zero/)
  await assert.rejects(render({ set: [...mode, ...schedule] }), /only KEDA scales to zero and has triggers/)
  const rules = await rendered('PrometheusRule', { set: [...mode, 'monitoring.prometheusRule.enabled=true'] })
  assert.match(JSON.stringify(rules), /horizontalpodautoscaler=~\\"spillway-worker\\"/)
})
