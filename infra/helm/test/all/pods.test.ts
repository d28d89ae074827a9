// Properties of the pods that operators rely on.
import assert from 'node:assert/strict'
import { GatewayConfig } from '@spillway/api/config'
import { WorkerConfig } from '@spillway/worker/config'
import { test } from 'vitest'
import { rendered, skip, specOf } from '../chart.ts'

const behindSentinels = [
  'redis.mode=sentinel',
  'redis.sentinelMaster=main',
  'redis.password.secret=redis-login',
  'redis.sentinelPassword.secret=redis-sentinels',
]

const withMail = [
  'mail.smtp.secret=mail-server',
  'mail.from=no-reply@example.com',
  'mail.confirmUrl=https://app.example.com/confirm#{token}',
  'mail.resetUrl=https://app.example.com/reset#{token}',
]

type Probes = Record<'startupProbe' | 'readinessProbe' | 'livenessProbe', { httpGet: { path: string } }>

interface Container extends Probes {
  name: string
  env: { name: string; value?: string; valueFrom?: unknown }[]
  resources: { requests: Record<string, string>; limits: Record<string, string> }
  securityContext: Record<string, unknown>
  volumeMounts?: { name: string; mountPath: string }[]
}

interface PodSpec {
  automountServiceAccountToken: boolean
  terminationGracePeriodSeconds: number
  securityContext: Record<string, unknown>
  containers: [Container]
  volumes?: { name: string; persistentVolumeClaim?: { claimName: string; readOnly: boolean } }[]
}

/** Of a deployment or a job. */
interface DeploymentSpec {
  replicas?: number
  template: { spec: PodSpec }
}

async function deployment(component: string, set: string[] = []): Promise<DeploymentSpec> {
  const found = await rendered('Deployment', { set })
  return specOf(found.find(({ metadata }) => metadata.name === `spillway-${component}`))
}

function variable({ template }: DeploymentSpec, name: string): Container['env'][number] | undefined {
  return template.spec.containers[0].env.find((one) => one.name === name)
}

test.skipIf(skip)('requests equal limits, in whole cores', async () => {
  for (const component of ['gateway', 'worker']) {
    const { resources } = (await deployment(component)).template.spec.containers[0]
    assert.deepEqual(resources.requests, resources.limits)
    assert.match(resources.limits.cpu ?? '', /^\d+$/)
  }
})

test.skipIf(skip)('a worker is told its limit in millicores, and has a thread for each core and two more', async () => {
  const worker = await deployment('worker', ['worker.cores=4'])
  assert.deepEqual(variable(worker, 'CPU_LIMIT_MILLICORES')?.valueFrom, {
    resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' },
  })
  assert.equal(variable(worker, 'UV_THREADPOOL_SIZE')?.value, '6')
})

test.skipIf(skip)('the number of workers is left to KEDA, and said by the chart when KEDA is off', async () => {
  assert.equal((await deployment('worker')).replicas, undefined)
  const fixed = await deployment('worker', ['autoscaling.enabled=false', 'worker.replicas=7'])
  assert.equal(fixed.replicas, 7)
})

test.skipIf(skip)('gateways are as many as is said, or left to an autoscaler that never takes away those', async () => {
  assert.equal((await deployment('gateway', ['gateway.replicas=3'])).replicas, 3)
  assert.deepEqual(await rendered('HorizontalPodAutoscaler'), [])
  const set = ['gateway.autoscaling.enabled=true', 'gateway.replicas=3', 'gateway.autoscaling.maxReplicas=8']
  assert.equal((await deployment('gateway', set)).replicas, undefined)
  const [autoscaler] = await rendered('HorizontalPodAutoscaler', { set })
  const spec = specOf<Record<string, unknown>>(autoscaler)
  const cpu = { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } }
  assert.deepEqual(
    { min: spec.minReplicas, max: spec.maxReplicas, metrics: spec.metrics, target: spec.scaleTargetRef },
    {
      min: 3,
      max: 8,
      metrics: [{ type: 'Resource', resource: cpu }],
      target: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'spillway-gateway' },
    },
  )
  await assert.rejects(
    rendered('HorizontalPodAutoscaler', { set: ['gateway.autoscaling.enabled=true', 'gateway.replicas=11'] }),
    /gateway.replicas is above gateway.autoscaling.maxReplicas/,
  )
})

test.skipIf(skip)('a stopping pod is given longer than what it may still have to do', async () => {
  const worker = await deployment('worker', ['worker.shutdownGraceSeconds=90'])
  assert.ok(worker.template.spec.terminationGracePeriodSeconds > 90)
  assert.equal(variable(worker, 'SHUTDOWN_GRACE_MS')?.value, '90000')
  const gateway = await deployment('gateway', ['config.loginWaitMs=30500', 'gateway.drainSeconds=7'])
  assert.ok(gateway.template.spec.terminationGracePeriodSeconds > 7 + 30.5)
  assert.equal(variable(gateway, 'DRAIN_MS')?.value, '7000')
})

test.skipIf(skip)('a gateway joins the Service once it reaches everything, and stays when all lose Redis', async () => {
  const { startupProbe, readinessProbe, livenessProbe } = (await deployment('gateway')).template.spec.containers[0]
  const paths = [startupProbe, readinessProbe, livenessProbe].map(({ httpGet }) => httpGet.path)
  assert.deepEqual(paths, ['/readyz', '/healthz', '/healthz'])
})

test.skipIf(skip)('pods hold no token, run as nobody in particular, and cannot write to their image', async () => {
  const found = [...(await rendered('Deployment')), ...(await rendered('Job'))]
  const pods = found.map((one) => specOf<DeploymentSpec>(one).template.spec)
  assert.equal(pods.length, 3)
  for (const pod of pods) {
    assert.equal(pod.automountServiceAccountToken, false)
    assert.equal(pod.securityContext.runAsNonRoot, true)
    assert.equal(pod.containers[0].securityContext.readOnlyRootFilesystem, true)
    assert.equal(pod.containers[0].securityContext.allowPrivilegeEscalation, false)
  }
})

test.skipIf(skip)(
  'no secret is in the chart: passwords and keys come from Secrets that are there already',
  async () => {
    assert.deepEqual(await rendered('Secret'), [])
    const gateway = await deployment('gateway', ['redis.password.secret=redis-login'])
    for (const name of ['DATABASE_URL', 'SPILLWAY_SEAL_KEYS', 'SPILLWAY_JWT_KEYS', 'OPS_PASSWORD', 'REDIS_PASSWORD'])
      assert.ok(variable(gateway, name)?.valueFrom, name)
    const worker = await deployment('worker')
    assert.ok(variable(worker, 'SPILLWAY_SEAL_KEYS')?.valueFrom)
    for (const name of ['DATABASE_URL', 'SPILLWAY_JWT_KEYS', 'OPS_PASSWORD'])
      assert.equal(variable(worker, name), undefined, name)
  },
)

test.skipIf(skip)('sentinels are asked with a password of their own, where they have one', async () => {
  const worker = await deployment('worker', behindSentinels)
  assert.ok(variable(worker, 'SENTINEL_PASSWORD')?.valueFrom)
  assert.equal(
    variable(worker, 'REDIS_URL')?.value,
    'redis+sentinel://:$(REDIS_PASSWORD)@redis:6379/main/0?sentinelPassword=$(SENTINEL_PASSWORD)',
  )
})

test.skipIf(skip)(
  'gateways read the list of breached passwords from a claim, beside the authority of TLS',
  async () => {
    assert.equal((await deployment('gateway')).template.spec.volumes, undefined)
    const gateway = await deployment('gateway', ['tls.ca.secret=ca', 'breachedPasswords.claim=lists'])
    const { volumes = [], containers } = gateway.template.spec
    const claims = volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim ?? [])
    assert.deepEqual(claims, [{ claimName: 'lists', readOnly: true }])
    assert.equal(volumes.length, 2)
    assert.deepEqual(
      containers[0].volumeMounts?.map(({ name }) => name),
      volumes.map(({ name }) => name),
    )
    assert.equal(variable(gateway, 'BREACHED_PASSWORDS_FILE')?.value, '/breached/breached.list')
  },
)

test.skipIf(skip)('gateways alone are told of mail, and how long its links are good', async () => {
  const gateway = await deployment('gateway', [...withMail, 'mail.confirmTtlS=172800', 'mail.resetTtlS=900'])
  assert.equal(variable(gateway, 'MAIL_CONFIRM_TTL_S')?.value, '172800')
  assert.equal(variable(gateway, 'MAIL_RESET_TTL_S')?.value, '900')
  const isOfMail = ({ name }: { name: string }) => /MAIL|SMTP/.test(name)
  for (const without of [await deployment('gateway'), await deployment('worker', withMail)])
    assert.deepEqual(without.template.spec.containers[0].env.filter(isOfMail), [])
  await assert.rejects(deployment('gateway', [...withMail, 'mail.resetTtlS=59']), /resetTtlS/)
})

test.skipIf(skip)('what hashes of other systems need goes to workers, and its secrets come from Secrets', async () => {
  const set = ['keys.peppers.secret=old-peppers', 'config.bcryptLongPasswords=refuse', 'config.keyedHashesFor=shop']
  const names = ['PASSWORD_PEPPERS', 'BCRYPT_LONG_PASSWORDS', 'KEYED_HASHES_FOR']
  const given = (one: DeploymentSpec) =>
    names.map((name) => variable(one, name)?.valueFrom ?? variable(one, name)?.value)
  const pepper = { secretKeyRef: { name: 'old-peppers', key: 'peppers' } }
  assert.deepEqual(given(await deployment('worker', set)), [pepper, 'refuse', 'shop'])
  assert.deepEqual(given(await deployment('worker')), [undefined, 'cut', undefined])
  assert.deepEqual(given(await deployment('gateway', set)), [undefined, undefined, undefined])
})

test.skipIf(skip)('every variable that a pod is given is one that its process reads', async () => {
  // Those that Node reads, and those that other variables are made of.
  const others = ['UV_THREADPOOL_SIZE', 'NODE_EXTRA_CA_CERTS', 'POD_IP', 'REDIS_PASSWORD', 'SENTINEL_PASSWORD']
  const read = {
    gateway: Object.keys(GatewayConfig.properties),
    worker: [...Object.keys(WorkerConfig.properties), 'CPU_LIMIT_MILLICORES'],
  }
  const secrets = ['tls.ca.secret=ca', 'keys.firebase.secret=firebase', 'keys.peppers.secret=old-peppers']
  const set = [...secrets, 'breachedPasswords.claim=lists', 'serviceApi.enabled=true', ...behindSentinels, ...withMail]
  for (const [component, known] of Object.entries(read)) {
    const { env } = (await deployment(component, set)).template.spec.containers[0]
    const names = env.map(({ name }) => name)
    assert.deepEqual(
      names.filter((name) => !known.includes(name) && !others.includes(name)),
      [],
      component,
    )
  }
})
