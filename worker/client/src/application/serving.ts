/** Whether this process answers requests of others. In one that does not, such as a script that seeds a database, nobody gives up waiting. */
import cluster from 'node:cluster'
import { isMainThread } from 'node:worker_threads'
import { hasServersAtPaths } from '../inside/node.js'

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
    serves = process.getActiveResourcesInfo().includes('TCPServerWrap') || hasServersAtPaths()
    return serves
  }
}
