// Manifests against the schemas of their kinds, by kubeconform.
import { ToolFailure } from '@spillway/local/processes/keeper'
import { run } from '@spillway/local/processes/run'
import { schemaLocation } from '../src/schemas/kinds.ts'

/**
 * The faults of the objects in a YAML text, a line each. Fields that a kind does not have are faults, and so are
 * kinds that neither Kubernetes nor the custom resources in the schemas' folder have.
 */
export async function manifestFaults(kubeconform: string, schemasDir: string, yaml: string): Promise<string[]> {
  try {
    await run(kubeconform, ['-strict', '-schema-location', schemaLocation(schemasDir), '-'], { input: yaml })
    return []
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error
    return error.output.trim().split('\n')
  }
}
