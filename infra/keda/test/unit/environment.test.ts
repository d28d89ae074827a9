// Variables by the rules of Kubernetes.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import type { KubernetesApi } from '../../src/api.ts'
import { type EnvVar, expand, type Pod, resolveEnvironment } from '../../src/kubelet/pod.ts'

/** An API that has nothing. */
const api: KubernetesApi = {
  call: async (method, path) => {
    throw new Error(`${method} ${path}`)
  },
  watch: () => ({ close() {} }),
  close() {},
}

function podWith(env: EnvVar[], cpu = '2'): Pod {
  return {
    metadata: { name: 'worker-1', namespace: 'login', uid: 'u' },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 15,
      containers: [{ name: 'worker', image: 'spillway/worker', env, resources: { limits: { cpu } } }],
    },
  }
}

test('a variable may name those before it, and a doubled dollar names none', () => {
  const env = { PASSWORD: 's3cret' }
  assert.equal(expand('redis://:$(PASSWORD)@host', env), 'redis://:s3cret@host')
  assert.equal(expand('$(UNKNOWN) $$(PASSWORD)', env), '$(UNKNOWN) $(PASSWORD)')
})

test('a pod is told its address, and its limit in the unit that it asks for', async () => {
  const limit = { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } }
  const variables: EnvVar[] = [
    { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
    { name: 'HOST', value: '$(POD_IP)' },
    { name: 'CPU_LIMIT_MILLICORES', valueFrom: limit },
  ]
  assert.deepEqual(await resolveEnvironment(api, podWith(variables), '127.0.1.2'), {
    POD_IP: '127.0.1.2',
    HOST: '127.0.1.2',
    CPU_LIMIT_MILLICORES: '2000',
  })
  const part = await resolveEnvironment(
    api,
    podWith([{ name: 'CORES', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } }], '1500m'),
    '',
  )
  assert.deepEqual(part, { CORES: '2' })
})

test('an instruction that is not supported here is refused, not left out', async () => {
  const unknown = { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }
  await assert.rejects(resolveEnvironment(api, podWith([unknown]), ''), /NODE: the field spec.nodeName/)
  const secret = { name: 'KEY', valueFrom: { secretKeyRef: { name: 'keys', key: 'seal' } } }
  await assert.rejects(resolveEnvironment(api, podWith([secret]), ''), /secrets\/keys/)
})
