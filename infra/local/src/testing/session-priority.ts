// The scheduling priority of workers in a test run.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { until } from '../processes/until.ts'

/**
 * Gives the session of a worker the share of any other again. It yields to all other sessions (see the worker's priority.ts), of which a test
 * run has dozens: it would get no processor time for seconds, and gateways would count it as gone.
 */
export async function raiseSession(pid: number): Promise<void> {
  const file = `/proc/${pid}/autogroup`
  // Where no change is taken, as in some containers, the worker's own was not either.
  if (!existsSync(file) || / nice 0$/m.test(readFileSync(file, 'utf8'))) return
  // The kernel takes ten changes a second from users other than root.
  await until(() => write(file), { what: 'the priority of a worker' })
}

function write(file: string): true {
  writeFileSync(file, '0')
  return true
}
