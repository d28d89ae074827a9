// Helm, kubeconform and the schemas, once `pnpm --filter @spillway/infra check` has built them.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Manifest, manifests, renderChart, valueSetsDir } from '@spillway/infra/helm/chart'
import { schemasDir as findSchemas, isBuilt, programSetDir, schemaLocations } from '@spillway/infra/helm/programs'
import { ToolFailure } from '@spillway/infra/processes/keeper'
import { run } from '@spillway/infra/processes/run'

export const schemasDir = await findSchemas()
const programs = await programSetDir('checks')
export const helm = join(programs, 'helm')
const kubeconform = join(programs, 'kubeconform')

/** For tests that cannot do without: why they are left out, or false. */
export const skip =
  (await isBuilt('checks')) && existsSync(schemasDir)
    ? false
    : 'Helm has not been built here: run pnpm --filter @spillway/infra check'

export const valueSets = (await readdir(valueSetsDir)).sort()

/** The chart with one of its value sets, as YAML. */
export async function renderSet(valueSet: string): Promise<string> {
  return await render({ valueFiles: [join(valueSetsDir, valueSet)] })
}

/** The chart with these values, as YAML. */
export async function render(values: { valueFiles?: string[]; set?: string[] }): Promise<string> {
  return await renderChart({ helm, release: 'spillway', namespace: 'login', ...values })
}

/** The objects of one kind in the chart with these values. */
export async function rendered(
  kind: string,
  values: { valueFiles?: string[]; set?: string[] } = {},
): Promise<Manifest[]> {
  return manifests(await render(values)).filter((one) => one.kind === kind)
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
