/**
 * The processors that this process may use, which is the number of hashes to run at a time. Node and libuv report the machine's processors,
 * not the container's limit (libuv #4740), so this reads the control group. It runs before the size of libuv's thread pool is set, so it is
 * synchronous and imports nothing that uses the pool.
 */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { posix } from 'node:path'

/** Inputs that tests replace. */
export interface CpuLimitSources {
  env: Record<string, string | undefined>
  read(path: string): string
  processors: number
}

const system: CpuLimitSources = {
  env: process.env,
  read: (path) => readFileSync(path, 'utf8'),
  processors: availableParallelism(),
}

/**
 * The slots of a worker, in this order: `WORKER_CONCURRENCY`; `CPU_LIMIT_MILLICORES` from the pod spec; the control group's limit, the
 * minimum up the tree; the processors available. Whole, and at least 1.
 */
export function workerConcurrency(sources: CpuLimitSources = system): number {
  const asked = positiveInteger(sources.env.WORKER_CONCURRENCY)
  if (asked !== undefined) return asked
  const millicores = positiveInteger(sources.env.CPU_LIMIT_MILLICORES)
  const cores = millicores === undefined ? cgroupCores(sources) : millicores / 1_000
  return Math.max(1, Math.floor(Math.min(cores, sources.processors)))
}

/** Threads in addition to those that hash, so that DNS lookups and file reads do not queue behind hashes. */
const SPARE_THREADS = 2

/** Sets the size of libuv's thread pool, which its first use fixes. Returns the slots. */
export function sizeThreadPool(): number {
  const slots = workerConcurrency()
  process.env.UV_THREADPOOL_SIZE = String(slots + SPARE_THREADS)
  return slots
}

function positiveInteger(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,6}$/.test(text) ? Number(text) : undefined
}

/** The tightest limit from this process's control group up to the root, in cores; Infinity without a limit. */
function cgroupCores({ read }: CpuLimitSources): number {
  const attempt = (path: string) => {
    try {
      return read(path)
    } catch {
      return undefined
    }
  }
  const limits: number[] = []
  for (const line of attempt('/proc/self/cgroup')?.split('\n') ?? []) {
    const [hierarchy, controllers = '', path = '/'] = line.split(':')
    if (hierarchy !== '0' && !controllers.split(',').includes('cpu')) continue
    const mounts = hierarchy === '0' ? ['/sys/fs/cgroup'] : ['/sys/fs/cgroup/cpu', '/sys/fs/cgroup/cpu,cpuacct']
    for (const mount of mounts) {
      for (const group of selfAndParents(path)) {
        const directory = posix.join(mount, group)
        const [quota, period] = attempt(`${directory}/cpu.max`)?.split(' ') ?? [
          attempt(`${directory}/cpu.cfs_quota_us`),
          attempt(`${directory}/cpu.cfs_period_us`),
        ]
        const cores = Number(quota) / Number(period)
        if (cores > 0) limits.push(cores)
      }
    }
  }
  return Math.min(...limits, Number.POSITIVE_INFINITY)
}

/** `/a/b` gives `/a/b`, `/a`, `/`. Inside a container the path may be the host's; then only the root exists. */
function selfAndParents(path: string): string[] {
  const groups = [path]
  while (groups[0] !== '/' && groups[0] !== '.') groups.unshift(posix.dirname(groups[0] ?? '/'))
  return groups
}
