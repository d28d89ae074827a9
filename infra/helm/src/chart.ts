// The chart, rendered by Helm.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '@spillway/infra/processes/run'
import { parseAllDocuments } from 'yaml'

export const chartDir = fileURLToPath(new URL('../spillway', import.meta.url))

/** The value sets that the chart is checked with: the files in its folder ci. */
export const valueSetsDir = join(chartDir, 'ci')

/** The fields that all objects of Kubernetes have in common. */
export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; labels?: Record<string, string>; annotations?: Record<string, string> }
  [field: string]: unknown
}

interface Rendering {
  helm: string
  release: string
  namespace: string
  valueFiles?: string[]
  /** Single values, as `path=value`. */
  set?: string[]
  /** The same with JSON for the value. */
  setJson?: string[]
}

/** Renders the chart to YAML, with hooks and tests. Rejects with Helm's output for bad values. */
export async function renderChart(rendering: Rendering): Promise<string> {
  const { helm, release, namespace, valueFiles = [], set = [], setJson = [] } = rendering
  const args = ['template', release, chartDir, '--namespace', namespace]
  args.push(...valueFiles.flatMap((file) => ['--values', file]), ...set.flatMap((value) => ['--set', value]))
  args.push(...setJson.flatMap((value) => ['--set-json', value]))
  return await run(helm, args)
}

export function manifests(yaml: string): Manifest[] {
  return parseAllDocuments(yaml)
    .map((document): unknown => document.toJS())
    .filter(isManifest)
}

function isManifest(value: unknown): value is Manifest {
  return typeof value === 'object' && value !== null && 'kind' in value && 'metadata' in value
}
