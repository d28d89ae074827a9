// The chart as it is installed, upgraded, and changed from one way of scaling to another.
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from '@spillway/infra/processes/until'
import { manifests, renderChart, valueSetsDir } from '../../../helm/src/chart.ts'
import { NAMESPACE, RELEASE } from '../installation.ts'
import type { Steps } from '../steps.ts'
import { MAX_REPLICAS, noneFailed, ORDINARY_PER_SECOND, type Stage, SYNC_MS } from './stage.ts'

/** Twice of what one worker does. */
const OVERLOAD_PER_SECOND = 8
/** The namespace of the policy. */
const REHEARSAL = 'rehearsal'
const openShiftAdmission = fileURLToPath(new URL('../../openshift-admission.yaml', import.meta.url))
const KEDA_DEFINITION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scaledobjects.keda.sh'
const AUTOSCALERS = `/apis/autoscaling/v2/namespaces/${NAMESPACE}/horizontalpodautoscalers`

/** The API server and KEDA's webhooks accept the chart, and its own tests pass. */
export async function chartSteps({ environment }: Stage, steps: Steps): Promise<undefined> {
  const { api, kubectl, helm, install } = environment
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  const rehearse = async (valueSet: string): Promise<string[]> => {
    const valueFiles = [join(valueSetsDir, valueSet)]
    const yaml = await renderChart({ helm, release: 'rehearsal', namespace: REHEARSAL, valueFiles })
    return await kubectl.dryRun(yaml, REHEARSAL)
  }

  await steps.step("the API server and KEDA's webhooks take every object of every value set", async () => {
    await kubectl.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: REHEARSAL, labels } })
    // Of everything.yaml.
    await kubectl.apply({
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'login' },
      value: 1,
    })
    let objects = 0
    for (const valueSet of await readdir(valueSetsDir)) objects += (await rehearse(valueSet)).length
    return `${objects} objects`
  })

  await steps.step("OpenShift's admission takes the values for OpenShift, and no others", async () => {
    await kubectl.applyFiles(openShiftAdmission)
    // A policy holds a moment after it was made.
    const refusal = () => rehearse('default.yaml').then(String, ({ message }: Error) => message)
    await until(async () => /restricted-v2/.test(await refusal()), { what: 'a refusal by the policy' })
    const objects = await rehearse('openshift.yaml')
    return `${objects.length} objects`
  })

  await steps.step('helm test: a login succeeds, the scaler watches a queue, a job shows in it', async () => {
    const report = await kubectl.helm('test', RELEASE, '--namespace', NAMESPACE, '--timeout', '1m')
    return `${report.match(/Phase:\s+Succeeded/g)?.length} tests`
  })

  await steps.step('what an older KEDA would refuse, Helm refuses by the version in the cluster', async () => {
    const isVersion = (version: string | null) =>
      api.call('PATCH', KEDA_DEFINITION, { metadata: { labels: { 'app.kubernetes.io/version': version } } })
    await isVersion('2.17.2')
    const prometheus = 'autoscaling.predictedWait.serverAddress=http://prometheus.example'
    await assert.rejects(install('autoscaling.trigger=predictedWait', prometheus), /takes KEDA 2\.18 or newer/)
    await isVersion(null)
    return 'KEDA 2.17.2'
  })
}

/** Upgrades of a running release. */
export async function upgradeSteps(stage: Stage, steps: Steps): Promise<undefined> {
  const { traffic, settled, environment } = stage
  const { api, kubectl, helm, install, installEarlier } = environment

  await steps.step('to the chart of an earlier commit and back under traffic, no login fails', async () => {
    await install()
    await settled(1)
    const before = traffic.results.length
    const seen = new Set(stage.workers())
    traffic.setRate(ORDINARY_PER_SECOND)
    for (const upgrade of [installEarlier, install]) {
      await upgrade()
      await settled(1)
      assert.ok(
        stage.workers().every((name) => !seen.has(name)),
        'the worker was not replaced',
      )
      for (const name of stage.workers()) seen.add(name)
    }
    await stage.autoscalerSees()
    await stage.trafficEnds()
    const results = traffic.results.slice(before)
    assert.ok(results.length > 0)
    noneFailed(results)
    return `${results.length} logins, every pod replaced twice`
  })

  await steps.step('from KEDA to an autoscaler of Kubernetes and back, each in one upgrade', async () => {
    const isAlone = async (name: string) => {
      const { items } = await api.call<{ items: { metadata: { name: string } }[] }>('GET', AUTOSCALERS)
      return items.map(({ metadata }) => metadata.name).join() === name
    }
    await install('autoscaling.mode=externalMetrics')
    await until(() => isAlone(`${RELEASE}-worker`), { timeoutMs: 120_000, what: "the chart's autoscaler alone" })
    // KEDA's webhook would refuse to come back, but for the annotation of that autoscaler.
    const rendered = manifests(await renderChart({ helm, release: RELEASE, namespace: NAMESPACE }))
    const scaledObject = JSON.stringify(rendered.find(({ kind }) => kind === 'ScaledObject'))
    const isTaken = async (ownership: string | null) => {
      const annotations = { 'validations.keda.sh/hpa-ownership': ownership }
      await api.call('PATCH', `${AUTOSCALERS}/${RELEASE}-worker`, { metadata: { annotations } })
      return await kubectl.dryRun(scaledObject, NAMESPACE).then(Boolean, (error: Error) => {
        assert.match(error.message, /already managed by the hpa/)
        return false
      })
    }
    await until(async () => !(await isTaken(null)), { what: 'a refusal by the webhook' })
    await until(() => isTaken('false'), { what: 'a webhook that knows the annotation' })
    await install()
    await until(() => isAlone(`keda-hpa-${RELEASE}-worker`), { timeoutMs: 120_000, what: "KEDA's autoscaler alone" })
    await stage.autoscalerSees()
    await settled(1)
    return '1 worker throughout'
  })

  await steps.step('by the predicted wait that KEDA reads from the gateways, workers come', async () => {
    await install('autoscaling.trigger=predictedWait')
    await stage.autoscalerSees()
    const before = traffic.results.length
    traffic.setRate(OVERLOAD_PER_SECOND)
    await until(async () => (await stage.replicas()) > 1, {
      timeoutMs: 4 * SYNC_MS,
      what: 'a larger number of workers',
    })
    await stage.trafficEnds()
    const results = traffic.results.slice(before)
    noneFailed(results)
    const most = await stage.replicas()
    assert.ok(most <= MAX_REPLICAS)
    await install()
    await stage.autoscalerSees()
    await settled(1)
    return `${results.length} logins, ${most} workers`
  })
}
