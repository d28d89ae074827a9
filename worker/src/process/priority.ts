/**
 * Scheduling priority: hashing yields to latency-sensitive processes on the same cores, such as Redis or a gateway. Between pods this
 * has no effect: their CPU limits decide.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'

const BELOW_NORMAL = constants.priority.PRIORITY_BELOW_NORMAL

/**
 * The nice value of the session: on a contended core the worker keeps a sixteenth. With 4 it kept three tenths, completed no more logins,
 * and neighbours waited twice as long in a spike (stress-5000, recipes). 19 is not clearly better, and leaves next to nothing.
 */
const SESSION_BELOW_NORMAL = 12

/**
 * Lowers the priority of this process. Call it before hashing threads start: they inherit it. Uses no thread of libuv's pool. An even
 * lower priority is kept, because only root may raise it.
 */
export function lowerPriority(): void {
  setPriority(Math.max(getPriority(), BELOW_NORMAL))
}

/** Lowers the priority of this process's session. Call it when the worker is ready: its start should be quick. */
export function lowerSessionPriority(): void {
  if (process.platform !== 'linux') return
  try {
    // With autogroups (sched(7)), Linux divides processor time between sessions first, and by nice value only within each. Without
    // this, five thousand connections that arrive at once wait for seconds until a gateway on the same core accepts them. A session
    // with another leader is shared with other processes, and left alone.
    if (ownSession() === process.pid) writeFileSync('/proc/self/autogroup', String(SESSION_BELOW_NORMAL))
  } catch {
    // The kernel has no autogroups, or the container may not write to /proc.
  }
}

/** The session id: the sixth field of the stat line, whose second is a name that may hold blanks and parentheses. */
function ownSession(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3])
}
