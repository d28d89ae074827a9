// Where this checkout is, and the one ignored folder in it that keeps what runs leave behind.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the checkout. */
export const repositoryDir = fileURLToPath(new URL('../../../..', import.meta.url))

/** Data, logs, secrets and fetched programs, kept between runs. */
export const defaultStateDir = join(repositoryDir, '.spillway')

/** Programs that were fetched: shared by every run of this checkout, whichever its state folder. */
export const programsDir = join(defaultStateDir, 'programs')
