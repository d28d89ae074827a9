// The schema of compose files, from the Go module of those who define them.

import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { moduleDir } from '@spillway/helm/modules'
import { programsDir } from '@spillway/local/processes/repository'

export const composeSchema = join(programsDir, 'compose-spec.json')

/** Fetches the schema unless it is there. Needs Go. */
export async function fetchComposeSchema(): Promise<void> {
  if (existsSync(composeSchema)) return
  copyFileSync(
    join(await moduleDir('github.com/compose-spec/compose-go/v2'), 'schema/compose-spec.json'),
    composeSchema,
  )
}
