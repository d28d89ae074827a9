// A control group of its own for a process, whose memory Linux limits, as a container's is. Only root may make one, and not everywhere.
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = '/sys/fs/cgroup'
const isFirstVersion = existsSync(join(root, 'memory'))

export interface MemoryGroup {
  add(pid: number): void
  /** After the end of all processes in it. */
  close(): void
}

/** Undefined where none can be made. */
export function createMemoryGroup(name: string, limitBytes: number): MemoryGroup | undefined {
  const dir = join(root, isFirstVersion ? 'memory' : '', name)
  try {
    mkdirSync(dir)
  } catch {
    return undefined
  }
  try {
    writeFileSync(join(dir, isFirstVersion ? 'memory.limit_in_bytes' : 'memory.max'), String(limitBytes))
  } catch {
    rmdirSync(dir)
    return undefined
  }
  return {
    add: (pid) => writeFileSync(join(dir, 'cgroup.procs'), String(pid)),
    close: () => rmdirSync(dir),
  }
}
