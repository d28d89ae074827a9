// What KEDA is told, against what it understands.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Manifest } from '../src/chart.ts'
import { manifests } from '../src/chart.ts'
import { rendered, renderSet, schemasDir, skip, valueSets } from './programs.ts'
import { readScalers, type Trigger, triggerFaults } from './trigger-metadata.ts'

interface ScaledObject {
  triggers: (Trigger & { authenticationRef?: { name: string } })[]
  fallback: { replicas: number; behavior: string }
  minReplicaCount: number
  advanced: { scalingModifiers?: { formula: string; target: string } }
}

function specOf<Spec>(manifest: Manifest | undefined): Spec {
  assert.ok(manifest)
  return JSON.parse(JSON.stringify(manifest.spec))
}

async function scaledObject(set: string[] = []): Promise<ScaledObject> {
  return specOf((await rendered('ScaledObject', { set }))[0])
}

for (const valueSet of valueSets) {
  test(`every trigger of ${valueSet} has what its scaler takes, and nothing else`, { skip }, async () => {
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

test('a misspelt, a missing and an unreadable field of a trigger are found', { skip }, async () => {
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

test('waiting and running jobs are added up, and the target is a whole number of slots', { skip }, async () => {
  const { advanced, triggers } = await scaledObject(['worker.cores=4', 'autoscaling.jobsPerSlot=3'])
  assert.deepEqual(
    advanced.scalingModifiers?.formula.split(' + '),
    triggers.map(({ name }) => name),
  )
  assert.equal(advanced.scalingModifiers?.target, '12')
})

test('the fallback never lets go of the last worker', { skip }, async () => {
  const { fallback, minReplicaCount } = await scaledObject(['autoscaling.minReplicas=0'])
  assert.equal(minReplicaCount, 0)
  assert.deepEqual(fallback, { failureThreshold: 3, behavior: 'currentReplicas', replicas: 1 })
})

test('KEDA, in another namespace, is given addresses that resolve there', { skip }, async () => {
  const { triggers } = await scaledObject(['redis.addresses={redis}'])
  assert.equal(triggers[0]?.metadata.address, 'redis.login.svc:6379')
  const elsewhere = await scaledObject(['redis.addresses={redis.data.svc:6380}'])
  assert.equal(elsewhere.triggers[0]?.metadata.address, 'redis.data.svc:6380')
})
