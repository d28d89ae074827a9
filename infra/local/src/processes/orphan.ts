// What a killed keeper could not end: a server of an earlier run that still holds its folder.
import { readFileSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { findProcess, isRunning } from './process-table.ts'

const graceMs = 15_000

/**
 * Ends the process that a pid file names and deletes the file. A process whose command line does not match the marker got the
 * number later, after a crash or a restart of the machine, and is left alone.
 */
export async function endOrphan(pidFile: string, marker: RegExp, signal: NodeJS.Signals): Promise<void> {
  const pid = readPid(pidFile)
  if (pid === undefined) return
  if (marker.test(findProcess(pid)?.command ?? '')) {
    process.kill(pid, signal)
    const deadline = Date.now() + graceMs
    while (isRunning(pid) && Date.now() < deadline) await sleep(50)
    if (isRunning(pid)) process.kill(pid, 'SIGKILL')
  }
  rmSync(pidFile, { force: true })
}

function readPid(pidFile: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(pidFile, 'utf8'), 10) || undefined
  } catch {
    return undefined
  }
}
