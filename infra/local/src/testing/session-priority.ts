// The scheduling priority of workers in a test run.
import { existsSync, writeFileSync } from 'node:fs'
import { until } from '../processes/until.ts'

const REFUSED_FOR_MS = 2_000

/**
 * Gives the session of a worker the share of any other again. It yields to all other sessions (see the worker's priority.ts), of which a test
 * run has dozens: it would get no processor time for seconds, and gateways would count it as gone.
 */
export async function raiseSession(pid: number): Promise<void> {
  const file = `/proc/${pid}/autogroup`
  // The kernel takes ten changes a second from users other than root, and a container may take none.
  if (existsSync(file)) await until(() => write(file), { timeoutMs: REFUSED_FOR_MS }).catch(() => undefined)
}

function write(file: string): true {
  writeFileSync(file, '0')
  return true
}
