// One holder at a time, by a file. Whoever holds it is gone when its keeper is: nothing of it runs any more, and however
// it ended, the file is free to take.
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Keeper } from '../processes/keeper.ts'
import { findProcess, isRunning } from '../processes/process-table.ts'

export interface Lock {
  close(): void
}

/** How long the keeper of a killed holder may take to end what that one had started. */
const cleanUpMs = 60_000

/**
 * Takes the lock for this process. A holder is waited for, for up to waitMs; what a killed holder left is waited for in
 * any case. Undefined if the lock cannot be had.
 */
export async function takeLock(file: string, keeper: Keeper, waitMs: number): Promise<Lock | undefined> {
  for (const startedAt = Date.now(); ; await sleep(50)) {
    const holder = readHolder(file)
    if (!holder) {
      rmSync(file, { force: true })
      if (create(file, `${process.pid} ${keeper.pid}`)) return { close: () => rmSync(file, { force: true }) }
    } else if (Date.now() - startedAt >= (holder.runs ? waitMs : cleanUpMs)) {
      return undefined
    }
  }
}

/** Whether a process holds this lock now. */
export function isHeld(file: string): boolean {
  return readHolder(file)?.runs === true
}

function readHolder(file: string): { runs: boolean } | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
  const [pid, keeperPid] = text.split(' ').map(Number)
  if (pid === undefined || keeperPid === undefined) return undefined
  // After a restart of the machine its number may be another's: then it is no keeper.
  if (!/keeper-process/.test(findProcess(keeperPid)?.command ?? '')) return undefined
  return { runs: isRunning(pid) }
}

/** Creates the file with its text in one step, so that nobody finds it empty. */
function create(file: string, text: string): boolean {
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, text, { mode: 0o600 })
  try {
    linkSync(draft, file)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft)
  }
}
