// `node processor-share-program.js <share> <pid>` holds the first thread of a process to this share
// of a core, as `cpu.max` does, which takes rights that users lack. A process that has used up its
// share is stopped (SIGSTOP) until it has some again (SIGCONT).
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

const [, , share = '', pidText = ''] = process.argv
const pid = Number(pidText)
let [askedAtMs, usedMs, leftMs, isStopped] = [performance.now(), readUsedMs(), 0, false]

function readUsedMs(): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / NS_PER_MS
}

setInterval(() => {
  const [nowMs, nowUsedMs] = [performance.now(), readUsedMs()]
  // Below zero after a run that was noticed late: it is made up for, within bounds.
  leftMs += (nowMs - askedAtMs) * Number(share) - (nowUsedMs - usedMs)
  leftMs = Math.max(-OWED_MS, Math.min(SAVED_MS, leftMs))
  askedAtMs = nowMs
  usedMs = nowUsedMs
  const stops = isStopped ? leftMs < RUN_MS : leftMs < 0
  if (stops !== isStopped) process.kill(pid, stops ? 'SIGSTOP' : 'SIGCONT')
  isStopped = stops
}, EVERY_MS)

process.once('SIGTERM', () => {
  process.kill(pid, 'SIGCONT')
  process.exit()
})
