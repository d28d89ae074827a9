// The chart, rendered by Helm and compared with schemas by kubeconform, once `pnpm --filter @spillway/infra check`
// has built both.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { schemasDir as findSchemas, isBuilt, programSetDir, schemaLocations } from '@spillway/infra/helm/programs'
import { ToolFailure } from '@spillway/infra/processes/keeper'
import { run } from '@spillway/infra/processes/run'
import { parseAllDocuments } from 'yaml'

export const chartDir = fileURLToPath(new URL('../spillway', import.meta.url))
export const schemasDir = await findSchemas()
const programs = await programSetDir('checks')
export const helm = join(programs, 'helm')
const kubeconform = join(programs, 'kubeconform')

/** For tests that cannot do without: why they are left out, or false. */
export const skip =
  (await isBuilt('checks')) && existsSync(schemasDir)
    ? false
    : 'Helm has not been built here: run pnpm --filter @spillway/infra check'

const valueSetsDir = join(chartDir, 'ci')
/** The value sets that the chart is checked with: the files in its folder ci. */
export const valueSets = (await readdir(valueSetsDir)).sort()

/** The fields that all objects of Kubernetes have in common. */
export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; labels?: Record<string, string>; annotations?: Record<string, string> }
  [field: string]: unknown
}

interface Rendering {
  release?: string
  namespace?: string
  /** A file in the folder ci. */
  valueSet?: string
  /** Single values, as `path=value`. */
  set?: string[]
  /** The same with JSON for the value. */
  setJson?: string[]
}

/** Renders the chart to YAML, with hooks and tests. Rejects with Helm's output for bad values. */
export async function render(rendering: Rendering = {}): Promise<string> {
  const { release = 'spillway', namespace = 'login', valueSet, set = [], setJson = [] } = rendering
  const args = ['template', release, chartDir, '--namespace', namespace]
  if (valueSet !== undefined) args.push('--values', join(valueSetsDir, valueSet))
  args.push(...set.flatMap((value) => ['--set', value]), ...setJson.flatMap((value) => ['--set-json', value]))
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

/** The objects of one kind in the chart with these values. */
export async function rendered(kind: string, rendering?: Rendering): Promise<Manifest[]> {
  return manifests(await render(rendering)).filter((one) => one.kind === kind)
}

/** The spec of an object, which has these fields. */
export function specOf<Spec>(manifest: Manifest | undefined): Spec {
  assert.ok(manifest?.spec)
  return JSON.parse(JSON.stringify(manifest.spec))
}

/**
 * The faults that kubeconform finds in the objects of a YAML text, a line each. Fields that a kind
 * does not have are faults, and so are kinds that neither Kubernetes nor the custom resources in
 * the schemas' folder have.
 */
export async function manifestFaults(yaml: string): Promise<string[]> {
  try {
    await run(kubeconform, ['-strict', ...schemaLocations(schemasDir), '-'], { input: yaml })
    return []
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error
    return error.output.trim().split('\n')
  }
}
