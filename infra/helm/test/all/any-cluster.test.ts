// What clusters and the charts around this one ask of every chart: the values by which others
// adapt charts, and a place in a chart of theirs.
import assert from 'node:assert/strict'
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { run } from '@spillway/infra/processes/run'
import { test } from 'vitest'
import { stringify } from 'yaml'
import { chartDir, helm, type Manifest, manifestFaults, manifests, render, rendered, skip, specOf } from '../chart.ts'

interface PodSpec {
  serviceAccountName?: string
  securityContext: Record<string, unknown>
  containers: [{ env?: { name: string }[]; volumeMounts?: { name: string }[] }]
  volumes?: { name: string }[]
  topologySpreadConstraints?: unknown
  [field: string]: unknown
}

interface PodTemplate {
  metadata: { labels: Record<string, string>; annotations?: Record<string, string> }
  spec: PodSpec
}

/** What all pods are made from, by name: two Deployments, the Job of the migration, three tests. */
async function pods(values: unknown = {}): Promise<Map<string, PodTemplate>> {
  const found = new Map<string, PodTemplate>()
  for (const one of manifests(await renderValues(values))) {
    if (one.kind === 'Pod')
      found.set(one.metadata.name, { metadata: { labels: {}, ...one.metadata }, spec: specOf(one) })
    if (one.kind === 'Deployment' || one.kind === 'Job')
      found.set(one.metadata.name, specOf<{ template: PodTemplate }>(one).template)
  }
  assert.equal(found.size, 6)
  return found
}

/** The chart with these values, all of whose objects Kubernetes and KEDA know. */
async function renderValues(values: unknown): Promise<string> {
  const setJson = Object.entries(Object(values)).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  const yaml = await render({ setJson })
  assert.deepEqual(await manifestFaults(yaml), [])
  return yaml
}

test.skipIf(skip)('as a dependency, beside values for all charts', async (t) => {
  const dir = await scratchDir(t)
  await mkdir(join(dir, 'charts'))
  await cp(chartDir, join(dir, 'charts/spillway'), { recursive: true })
  const dependency = { name: 'spillway', version: '>=0.0.0-0', condition: 'spillway.enabled' }
  const umbrella = { apiVersion: 'v2', name: 'shop', version: '1.0.0', dependencies: [dependency] }
  await writeFile(join(dir, 'Chart.yaml'), stringify(umbrella))
  const values = { spillway: { enabled: true }, global: { imageRegistry: 'registry.example.com' } }
  await writeFile(join(dir, 'values.yaml'), stringify(values))
  const yaml = await run(helm, ['template', 'shop', dir, '--namespace', 'login'])
  const names = manifests(yaml).map(({ kind, metadata }) => `${kind}/${metadata.name}`)
  assert.ok(names.includes('Deployment/shop-spillway-gateway'))
  assert.deepEqual(await manifestFaults(yaml), [])
})

test.skipIf(skip).each<[string, string, Record<string, string>, string]>([
  ['the release', 'spillway', {}, 'spillway'],
  ['release and chart', 'blue', {}, 'blue-spillway'],
  ['nameOverride', 'blue', { nameOverride: 'logins' }, 'blue-logins'],
  ['a release that holds nameOverride', 'logins-blue', { nameOverride: 'logins' }, 'logins-blue'],
  ['fullnameOverride', 'blue', { nameOverride: 'logins', fullnameOverride: 'sso' }, 'sso'],
])('names begin with %s', async (_, release, overrides, name) => {
  const set = Object.entries(overrides).map(([value, text]) => `${value}=${text}`)
  const found = manifests(await render({ release, set }))
  const others = found.filter(({ metadata }) => !metadata.name.startsWith(name))
  assert.deepEqual(others, [])
  const workers = found.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === `${name}-worker`)
  const { selector } = specOf<{ selector: unknown }>(workers)
  const labels = {
    'app.kubernetes.io/name': overrides.nameOverride ?? 'spillway',
    'app.kubernetes.io/instance': release,
  }
  assert.deepEqual(selector, { matchLabels: { ...labels, 'app.kubernetes.io/component': 'worker' } })
})

test.skipIf(skip)('no name is longer than Kubernetes and KEDA take, with the longest name of a release', async () => {
  const release = 'a'.repeat(53)
  for (const { kind, metadata } of manifests(await render({ release }))) {
    const name = kind === 'ScaledObject' ? `keda-hpa-${metadata.name}` : metadata.name
    assert.ok(kind === 'NetworkPolicy' || name.length <= 63, `${kind} ${name}`)
  }
})

test.skipIf(skip)('labels are on all objects and pods, and take no label away that selectors need', async () => {
  const own = {
    'example.com/team': 'identity',
    'app.kubernetes.io/name': 'other',
    'app.kubernetes.io/managed-by': 'me',
  }
  const of = ({ labels = {} }: Manifest['metadata']) => Object.keys(own).map((name) => labels[name])
  const all = ['identity', 'spillway', 'Helm']
  const values = { commonLabels: own, gateway: { podLabels: { 'example.com/team': 'web' } } }
  for (const { metadata } of manifests(await renderValues(values))) assert.deepEqual(of(metadata), all, metadata.name)
  for (const [name, { metadata }] of await pods(values)) {
    const [team, ...rest] = of({ name, ...metadata })
    assert.deepEqual([team, rest], [name === 'spillway-gateway' ? 'web' : 'identity', all.slice(1)], name)
  }
})

test.skipIf(skip)(
  'on nodes that are tainted and chosen, all pods run: workers where theirs may, others with gateways',
  async () => {
    const nodes = (pool: string) => ({
      nodeSelector: { pool },
      tolerations: [{ key: pool, operator: 'Exists', effect: 'NoSchedule' }],
      affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
      priorityClassName: pool,
    })
    for (const [name, { spec }] of await pods({ gateway: nodes('web'), worker: nodes('hash') })) {
      const wanted = nodes(name === 'spillway-worker' ? 'hash' : 'web')
      assert.deepEqual(Object.fromEntries(Object.keys(wanted).map((field) => [field, spec[field]])), wanted, name)
    }
    for (const { spec } of (await pods()).values()) assert.ok(!('tolerations' in spec || 'nodeSelector' in spec))
  },
)

test.skipIf(skip)('pods have further volumes and variables, labels and annotations', async () => {
  const extra = (name: string) => ({
    extraEnv: [{ name: 'HTTPS_PROXY', value: name }],
    extraVolumes: [{ name, emptyDir: {} }],
    extraVolumeMounts: [{ name, mountPath: '/extra' }],
    podLabels: { 'example.com/identity': name },
    podAnnotations: { 'example.com/inject': name },
  })
  const components = ['gateway', 'worker', 'migration']
  const values = {
    tls: { ca: { secret: 'authority' } },
    ...Object.fromEntries(components.map((one) => [one, extra(one)])),
  }
  const found = await pods(values)
  for (const component of components) {
    const { metadata, spec } = found.get(`spillway-${component}`) ?? assert.fail(component)
    const [{ env = [], volumeMounts = [] }] = spec.containers
    assert.deepEqual(env.at(-1), { name: 'HTTPS_PROXY', value: component })
    for (const list of [volumeMounts, spec.volumes ?? []])
      assert.deepEqual(
        list.map(({ name }) => name),
        ['ca', component],
      )
    assert.equal(metadata.labels['example.com/identity'], component)
    assert.deepEqual(metadata.annotations, { 'example.com/inject': component })
  }
})

test.skipIf(skip)(
  'workload identity: the ServiceAccount has its annotations, or is yours, for the migration as well',
  async () => {
    const annotations = { 'example.com/role': 'logins' }
    const [account] = await rendered('ServiceAccount', {
      set: ['serviceAccount.annotations.example\\.com/role=logins'],
    })
    assert.deepEqual(account?.metadata, { ...account?.metadata, name: 'spillway', annotations })
    const identities = async (values: unknown) =>
      [...(await pods(values))].map(([name, { spec }]) => [name.replace('spillway-', ''), spec.serviceAccountName])
    const of = (gateway: string, migration?: string) => ({ gateway, worker: gateway, migration })
    const three = (all: unknown[][]) => Object.fromEntries(all.filter(([name]) => !String(name).startsWith('test-')))
    assert.deepEqual(three(await identities({})), of('spillway'))
    assert.deepEqual(three(await identities({ serviceAccount: { name: 'sso' } })), of('sso'))
    assert.deepEqual(three(await identities({ serviceAccount: { create: false } })), of('default', 'default'))
    const yours = { serviceAccount: { create: false, name: 'sso' } }
    assert.deepEqual(three(await identities(yours)), of('sso', 'sso'))
    assert.deepEqual(await rendered('ServiceAccount', { set: ['serviceAccount.create=false'] }), [])
  },
)

test.skipIf(skip)('OpenShift chooses user and groups, when it is named or known by its API', async () => {
  const fields = ['runAsUser', 'runAsGroup', 'fsGroup']
  for (const { spec } of (await pods()).values())
    assert.deepEqual(
      fields.map((field) => spec.securityContext[field]),
      [1_000, 1_000, 1_000],
    )
  for (const { spec } of (await pods({ openshift: true })).values())
    assert.deepEqual(spec.securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
  const args = ['template', 'spillway', chartDir, '--api-versions', 'security.openshift.io/v1']
  assert.doesNotMatch(await run(helm, args), /runAsUser|runAsGroup|fsGroup/)
})

test.skipIf(skip)(
  'DNS is reached on the ports of its pods, at NodeLocal DNSCache, and where the values say',
  async () => {
    const egress = async (set: string[]) => {
      const policies = await rendered('NetworkPolicy', { set })
      const denying = policies.find(({ metadata }) => metadata.name === 'spillway-default-deny')
      return specOf<{ egress: { to: object[]; ports: { port: number; protocol: string }[] }[] }>(denying).egress[0]
    }
    const usual = await egress([])
    assert.deepEqual(
      usual?.ports.map(({ port, protocol }) => `${port}/${protocol}`),
      ['53/UDP', '53/TCP'],
    )
    assert.deepEqual(usual.to.at(-1), { ipBlock: { cidr: '169.254.20.10/32' } })
    const both = await egress(['networkPolicy.dnsPorts={53,5353}'])
    assert.deepEqual(
      both?.ports.map(({ port }) => port),
      [53, 53, 5353, 5353],
    )
    await assert.rejects(render({ set: ['networkPolicy.dnsPorts={}'] }), /dnsPorts/)
  },
)
