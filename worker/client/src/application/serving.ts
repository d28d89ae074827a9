/** Whether this process answers requests of others. In one that does not, such as a script that seeds a database, nobody gives up waiting. */
import cluster from 'node:cluster'
import { Server } from 'node:net'
import { isMainThread } from 'node:worker_threads'

/** Listing what keeps a process alive takes long where that is much. */
const LOOK_AGAIN_MS = 100
/** Once a server has listened, the process serves until its end. So it does where that cannot be known: in a thread, or without Node. */
export function createServing(): () => boolean {
  let serves = cluster.isWorker || !isMainThread || typeof process.getActiveResourcesInfo !== 'function'
  let lookedAt = Number.NEGATIVE_INFINITY
  return () => {
    const now = performance.now()
    if (serves || now - lookedAt < LOOK_AGAIN_MS) return serves
    lookedAt = now
    serves = process.getActiveResourcesInfo().includes('TCPServerWrap') || hasServers()
    return serves
  }
}

/** Servers at a path of the file system, of which Node tells as of any other pipe. Undocumented: without it they are not seen. */
function hasServers(): boolean {
  const handles: unknown = Reflect.get(process, '_getActiveHandles')?.call(process)
  return Array.isArray(handles) && handles.some((handle) => handle instanceof Server)
}
