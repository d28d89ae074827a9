// The paths of this checkout and of its ignored state folder.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const repositoryDir = fileURLToPath(new URL('../../../..', import.meta.url))

/** Data, logs, secrets and fetched programs, kept between runs. */
export const defaultStateDir = join(repositoryDir, '.spillway')

/** Downloaded programs, shared by all runs of this checkout, whatever their state folder. */
export const programsDir = join(defaultStateDir, 'programs')
