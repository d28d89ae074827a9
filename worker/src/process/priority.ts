/**
 * Hashing stands back for whatever shares its cores and has somebody waiting: Redis, or a gateway. Between pods it changes
 * nothing: there the limits decide.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'

const BELOW_NORMAL = constants.priority.PRIORITY_BELOW_NORMAL

/**
 * How far the session stands back, as a nice value: the worker keeps three tenths of a core that others want all of. With 10 it
 * would keep one tenth, and lose 5 % of its logins to being woken for little; with 0 others wait for seconds in a storm.
 */
const SESSION_BELOW_NORMAL = 4

/**
 * Before there are threads that hash: they take it over when they are started. Uses no thread of libuv's pool. A process that was
 * started even further back stays there: only root may come forward.
 */
export function standBack(): void {
  setPriority(Math.max(getPriority(), BELOW_NORMAL))
}

/** When the worker is ready: until then somebody waits for it. */
export function standBackAsSession(): void {
  if (process.platform !== 'linux') return
  try {
    // Where Linux divides a machine's time between sessions first (autogroups, sched(7)) and only then by priority within each, of
    // a session of our own the whole has to stand back: else five thousand connections that arrive at once wait for seconds until a
    // gateway on the same core has accepted them. A session that is not ours belongs to others as well.
    if (ownSession() === process.pid) writeFileSync('/proc/self/autogroup', String(SESSION_BELOW_NORMAL))
  } catch {
    // A kernel without autogroups, or a container that may not write there.
  }
}

/** The sixth field of the stat line; the second is a name that may hold blanks and parentheses. */
function ownSession(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3])
}
