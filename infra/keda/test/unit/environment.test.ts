// Variables by the rules of Kubernetes.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import type { KubernetesApi } from '../../src/api.ts'
import { type EnvVar, expand, type Pod, resolveEnvironment, runArguments } from '../../src/pod.ts'

/** An API that has nothing. */
const api: Pick<KubernetesApi, 'call'> = {
  call: async (method, path) => {
    throw new Error(`${method} ${path}`)
  },
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

test('a container has the limits, the user and the rights of its pod', () => {
  const { metadata, spec } = podWith([])
  const [container] = spec.containers
  const limited = {
    ...container,
    resources: { limits: { cpu: '1500m', memory: '256Mi' } },
    securityContext: {
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    },
  }
  const securityContext = { runAsUser: 1_000, runAsGroup: 1_000 }
  assert.deepEqual(runArguments({ metadata, spec: { ...spec, securityContext, containers: [limited] } }), [
    '--network=host',
    '--user=1000:1000',
    '--read-only',
    '--security-opt=no-new-privileges',
    '--cap-drop=ALL',
    '--cpus=1.5',
    '--memory=256m',
  ])
})
