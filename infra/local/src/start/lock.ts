// A lock with one holder at a time: a symbolic link, which is created together with its text. The lock
// is free once the holder's keeper process has ended, for any reason: then no process of the holder runs.
import { mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Keeper } from '../processes/keeper.ts'
import { findProcess, isRunning } from '../processes/process-table.ts'

/** How long the keeper of a killed holder may take to stop the holder's processes. */
const cleanUpMs = 60_000

/** Waits up to waitMs for a running holder, and for the keeper of a killed one. Else undefined. */
export async function takeLock(file: string, keeper: Keeper, waitMs: number) {
  mkdirSync(dirname(file), { recursive: true })
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

export function isHeld(file: string): boolean {
  return readHolder(file)?.runs === true
}

function readHolder(file: string): { runs: boolean } | undefined {
  let text: string
  try {
    text = readlinkSync(file)
  } catch {
    return undefined
  }
  const [pid, keeperPid] = text.split(' ').map(Number)
  if (pid === undefined || keeperPid === undefined) return undefined
  // After a restart of the machine, another process may have the keeper's pid.
  if (!/keeper-process/.test(findProcess(keeperPid)?.command ?? '')) return undefined
  return { runs: isRunning(pid) }
}

function create(file: string, text: string): boolean {
  try {
    symlinkSync(text, file)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}
