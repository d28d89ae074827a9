// Stops orphans: servers of an earlier run, whose keeper was killed too, that still use their folder.
import { readFileSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { findProcess, isRunning } from './process-table.ts'

const graceMs = 15_000

/**
 * Stops the process of a pid file and deletes the file. A process whose command line does not match the marker is left alone: it got
 * the same pid later.
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
