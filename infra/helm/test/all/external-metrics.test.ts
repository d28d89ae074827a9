// Workers scaled without KEDA: the autoscaler of the chart, and the rule in its README by which an
// adapter tells the queue.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratchDir } from '@spillway/infra/rig/namespace'
import { test } from 'vitest'
import { parse } from 'yaml'
import { promtool, skipWithoutPrometheus } from '../../../grafana/src/prometheus.ts'
import { render, rendered, skip, specOf } from '../programs.ts'
import { readmeFile } from '../values-table.ts'

const mode = 'autoscaling.mode=externalMetrics'

interface ExternalRule {
  seriesQuery: string
  name: { as: string }
  metricsQuery: string
}

/** The rule in the README. */
async function adapterRule(): Promise<ExternalRule> {
  const [, yaml = ''] = /```yaml\n(# Of the adapter's chart[^`]*)```/.exec(await readFile(readmeFile, 'utf8')) ?? []
  const [rule]: ExternalRule[] = parse(yaml).rules.external
  assert.ok(rule)
  return rule
}

test.skipIf(skip)('an autoscaler of Kubernetes takes the place of KEDA, with the same target', async () => {
  const set = [mode, 'worker.cores=3', 'autoscaling.jobsPerSlot=5', 'autoscaling.minReplicas=2']
  for (const kind of ['ScaledObject', 'TriggerAuthentication']) {
    assert.deepEqual(await rendered(kind, { set: [...set, 'redis.password.secret=redis'] }), [])
  }
  const autoscalers = await rendered('HorizontalPodAutoscaler', { set })
  assert.equal(autoscalers.length, 1)
  // While an upgrade changes to mode keda, both are there.
  assert.deepEqual(autoscalers[0]?.metadata.annotations, { 'validations.keda.sh/hpa-ownership': 'false' })
  const spec = specOf<Record<string, unknown>>(autoscalers[0])
  const metric = { name: (await adapterRule()).name.as, selector: { matchLabels: { service: 'spillway-gateway-ops' } } }
  assert.deepEqual(
    { min: spec.minReplicas, target: spec.scaleTargetRef, metrics: spec.metrics },
    {
      min: 2,
      target: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'spillway-worker' },
      metrics: [{ type: 'External', external: { metric, target: { type: 'AverageValue', averageValue: '15' } } }],
    },
  )
  const services = (await rendered('Service', { set })).map(({ metadata }) => metadata.name)
  assert.ok(services.includes(metric.selector.matchLabels.service))
  const [workers] = (await rendered('Deployment', { set })).filter(({ metadata }) => metadata.name.endsWith('-worker'))
  assert.ok(workers?.spec instanceof Object && !('replicas' in workers.spec))
})

test.skipIf(skip)('with both autoscalers workers come and go as quickly', async () => {
  const [keda] = await rendered('ScaledObject')
  const [own] = await rendered('HorizontalPodAutoscaler', { set: [mode] })
  const { advanced } = specOf<{ advanced: { horizontalPodAutoscalerConfig: { behavior: object } } }>(keda)
  assert.deepEqual(specOf<{ behavior: object }>(own).behavior, advanced.horizontalPodAutoscalerConfig.behavior)
})

test.skipIf(skip)('what only KEDA does is refused with the way out', async () => {
  const schedule = ['start=0 8 * * *', 'end=0 9 * * *', 'timezone=UTC', 'replicas=5'].map(
    (one) => `autoscaling.schedules[0].${one}`,
  )
  const refusals: [string[], RegExp][] = [
    [['autoscaling.minReplicas=0'], /only KEDA scales to zero/],
    [['autoscaling.minReplicas=30'], /raise the one or lower the other/],
    [['autoscaling.trigger=predictedWait'], /is for autoscaling.mode keda/],
    [schedule, /raise autoscaling.minReplicas before a peak/],
  ]
  for (const [set, sentence] of refusals) await assert.rejects(render({ set: [mode, ...set] }), sentence)
})

test.skipIf(skip)('the alert of a backlog at the maximum knows the autoscaler by its name', async () => {
  const rules = JSON.stringify(
    await rendered('PrometheusRule', { set: [mode, 'monitoring.prometheusRule.enabled=true'] }),
  )
  assert.match(rules, /horizontalpodautoscaler=~\\"spillway-worker/)
  assert.doesNotMatch(rules, /keda-hpa/)
})

test.skipIf(skipWithoutPrometheus)(
  "the adapter's rule counts each unfinished job of a release once, however many gateways tell it",
  async (t) => {
    const { seriesQuery, metricsQuery } = await adapterRule()
    const series = seriesQuery.slice(0, seriesQuery.indexOf('{'))
    const expr = metricsQuery
      .replace('<<.Series>>', series)
      .replace('<<.LabelMatchers>>', 'namespace="login",service="spillway-gateway-ops"')
    const told = (labels: string, values: string) => ({ series: `${series}{${labels}}`, values })
    const pod = (name: string, state: string, namespace = 'login') =>
      `namespace="${namespace}",service="spillway-gateway-ops",pod="${name}",state="${state}"`
    const file = {
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: [
            told(pod('a', 'waiting'), '10x5'),
            told(pod('b', 'waiting'), '10x5'),
            told(pod('a', 'deferred'), '4x5'),
            told(pod('b', 'active'), '2x5'),
            told(pod('a', 'completed'), '900x5'),
            told(pod('c', 'waiting', 'other'), '500x5'),
          ],
          promql_expr_test: [{ expr, eval_time: '2m', exp_samples: [{ labels: '{}', value: 16 }] }],
        },
      ],
    }
    const dir = await scratchDir(t)
    // JSON is YAML.
    await writeFile(join(dir, 'test.yaml'), JSON.stringify(file))
    await promtool(dir, ['test', 'rules', 'test.yaml'])
  },
)
