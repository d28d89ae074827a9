/**
 * The processors that this process may use. Node and libuv report those of the machine (libuv
 * #4740). So this reads the control group: synchronously, before libuv's thread pool is used.
 */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { posix } from 'node:path'

/** Tests replace them. */
interface CpuLimitSources {
  env: Record<string, string | undefined>
  read(path: string): string
  processors: number
}

const system: CpuLimitSources = {
  env: process.env,
  read: (path) => readFileSync(path, 'utf8'),
  processors: availableParallelism(),
}

/** The slots of a worker: as configured, or by the limit of the pod or of the control group. */
export function workerConcurrency(sources: CpuLimitSources = system): number {
  const asked = positiveInteger(sources.env.WORKER_CONCURRENCY)
  if (asked !== undefined) return asked
  const millicores = positiveInteger(sources.env.CPU_LIMIT_MILLICORES)
  const cores = millicores === undefined ? cgroupCores(sources) : millicores / 1_000
  return Math.max(1, Math.floor(Math.min(cores, sources.processors)))
}

/** DNS lookups and file reads must not queue behind hashes. */
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

/** Lowest limit from this process's control group to the root, in cores; Infinity without one. */
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

/** `/a/b` gives `/a/b`, `/a`, `/`. A container may see the host's path: only the root exists. */
function selfAndParents(path: string): string[] {
  const groups = [path]
  while (groups[0] !== '/' && groups[0] !== '.') groups.unshift(posix.dirname(groups[0] ?? '/'))
  return groups
}
