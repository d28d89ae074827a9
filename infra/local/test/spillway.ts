// `pnpm start` under test, on free ports.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Ending } from '@spillway/infra/harness/namespace'
import { type NodeProcess, startProcess } from '@spillway/infra/processes/node-process'
import { findProcess, isRunning, listProcesses } from '@spillway/infra/processes/process-table'
import { until } from '@spillway/infra/processes/until'

/** Only a hang takes longer. */
const upMs = 180_000

/**
 * Runs the command on a state folder, of this checkout [or another]; whatever becomes of the test,
 * nothing of it is left.
 */
export function runStart(
  t: Ending,
  stateDir: string,
  args: string[] = [],
  env: NodeJS.ProcessEnv = {},
  checkout = '.',
): NodeProcess {
  const spillway = startProcess({
    entry: `${checkout}/infra/local/src/start/main.ts`,
    nodeArgs: ['--import', 'tsx'],
    args,
    env: { ...startEnvironment(stateDir), ...env },
  })
  t.onTestFinished(async () => {
    const pids = descendants(spillway.pid)
    await spillway.close()
    await allEnded(pids)
  })
  return spillway
}

export function startEnvironment(stateDir: string): NodeJS.ProcessEnv {
  // With a Rust toolchain, a build of the engine would take longer than all that is tested here.
  return { PORT: '0', OPS_PORT: '0', HASH_ENGINE: 'packages', SPILLWAY_DIR: stateDir }
}

/** Resolves once the screen is there, with the ids of all processes of the run. */
export async function whenUp(spillway: NodeProcess): Promise<number[]> {
  await spillway.waitForLog(({ msg }) => msg?.startsWith('Spillway is up') === true, upMs)
  await until(() => curls(spillway).length === 2)
  return descendants(spillway.pid)
}

/** Resolves when none of these processes runs any more. */
export async function allEnded(pids: number[]): Promise<void> {
  await until(() => pids.every((pid) => !isRunning(pid)), { what: `the end of ${pids.length} processes` })
}

/** The ids of the children of a process, of theirs, and so on, as the system lists them. */
function descendants(pid: number): number[] {
  const children = listProcesses().filter((other) => findProcess(other)?.parentPid === pid)
  return children.flatMap((child) => [child, ...descendants(child)])
}

/** The two commands on the screen. */
export function curls(spillway: NodeProcess): string[] {
  return spillway.output().match(/^ {2}curl .*$/gm) ?? []
}

/**
 * Does what a printed curl does, where there may be no curl, and gives the status. A ticket is
 * redeemed and a 503 repeated: a busy machine may cause them at any time.
 */
export async function status(curl: string | undefined): Promise<number> {
  const [, url, header, body] = /^ {2}curl -i (\S+) -H '([^']+)' -d '([^']+)'$/.exec(curl ?? '') ?? []
  if (url === undefined || header === undefined || body === undefined)
    throw new Error(`not a curl as expected: ${curl}`)
  const [name = '', value = ''] = header.split(': ')
  const post = async (to: string, text: string): Promise<number> => {
    const response = await fetch(to, { method: 'POST', headers: { [name]: value }, body: text })
    const { ticket }: { ticket?: string } = JSON.parse(await response.text())
    if (response.status !== 202 && response.status !== 503) return response.status
    await sleep(1_000 * Number(response.headers.get('retry-after')))
    return ticket === undefined
      ? post(to, text)
      : post(new URL('/v1/tickets/redeem', url).href, JSON.stringify({ ticket }))
  }
  return await post(url, body)
}
