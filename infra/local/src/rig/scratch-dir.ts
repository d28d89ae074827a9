// Folders that tests put things in.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeHome } from '../services/postgres-user.ts'

/** A test, or a file of tests: `{ onTestFinished: afterAll }`. */
export interface Ending {
  onTestFinished(close: () => Promise<void>): void
}

/** A new folder that anyone may enter. It is gone after the test, with what PostgreSQL had to put elsewhere for it. */
export async function scratchDir(t: Ending): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'spillway-test-'))
  await chmod(dir, 0o711)
  t.onTestFinished(async () => {
    await removeHome(join(dir, 'postgres'))
    await rm(dir, { recursive: true, force: true })
  })
  return dir
}
