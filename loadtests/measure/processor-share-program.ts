// `node processor-share-program.js <share> <pid> ...` holds the first thread of each process to
// this share of a core, as `cpu.max` does, which takes rights that users lack. A process that has
// used up its share is stopped (SIGSTOP) until it has some again (SIGCONT).
import { readFileSync } from 'node:fs'

/** How often the kernel is asked, in milliseconds. */
const EVERY_MS = 1
/** A stopped process goes on when it may run for so long. */
const RUN_MS = 2
/** What a process may save while it idles: more would make it fast afterwards. */
const SAVED_MS = 4
/**
 * What it may owe. A control group stops nobody for longer than its period, 100 ms. Without a
 * bound, 3 s in which this program got no core stopped a process for 3 s.
 */
const OWED_MS = 50
const NS_PER_MS = 1e6

const [, , share = '', ...pids] = process.argv
const processes = pids.map((pid) => ({ pid: Number(pid), usedMs: usedMs(Number(pid)), leftMs: 0, isStopped: false }))
let askedAtMs = performance.now()

function usedMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / NS_PER_MS
}

setInterval(() => {
  const nowMs = performance.now()
  const shareMs = (nowMs - askedAtMs) * Number(share)
  askedAtMs = nowMs
  for (const one of processes) {
    const used = usedMs(one.pid)
    // Below zero after a run that was noticed late: it is made up for, within bounds.
    one.leftMs = Math.max(-OWED_MS, Math.min(SAVED_MS, one.leftMs + shareMs - (used - one.usedMs)))
    one.usedMs = used
    const isStopped = one.isStopped ? one.leftMs < RUN_MS : one.leftMs < 0
    if (isStopped !== one.isStopped) process.kill(one.pid, isStopped ? 'SIGSTOP' : 'SIGCONT')
    one.isStopped = isStopped
  }
}, EVERY_MS)

process.once('SIGTERM', () => {
  for (const { pid } of processes) process.kill(pid, 'SIGCONT')
  process.exit()
})
