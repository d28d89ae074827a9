// The chart as it is installed: taken by the API server, and found good by its own tests.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { renderChart, valueSetsDir } from '@spillway/helm/chart'
import type { Environment } from '../environment.ts'
import { NAMESPACE, RELEASE } from '../installation.ts'
import type { Steps } from '../steps.ts'

export async function showChart({ kubectl, helm }: Environment, { step }: Steps): Promise<void> {
  await step('the API server takes every object of every value set', async () => {
    await kubectl.apply({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'rehearsal', labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    })
    let objects = 0
    for (const file of await readdir(valueSetsDir)) {
      const valueFiles = [join(valueSetsDir, file)]
      const yaml = await renderChart({ helm, release: 'rehearsal', namespace: 'rehearsal', valueFiles })
      objects += (await kubectl.dryRun(yaml, 'rehearsal')).length
    }
    return `${objects} objects`
  })

  await step('helm test: a login succeeds, the scaler watches a queue, a job shows in it', async () => {
    const report = await kubectl.helm('test', RELEASE, '--namespace', NAMESPACE, '--timeout', '1m')
    return `${report.match(/Phase:\s+Succeeded/g)?.length} tests`
  })
}
