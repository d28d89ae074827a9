// A process that sends requests on kept connections: `node rush.ts <json>`. Prints its result as a
// line of JSON.
import { Accounts, type Credential } from '../load/accounts.ts'
import { ClosedLoop, type Counted, repeats } from '../load/closed.ts'

export interface RushOptions {
  url: string
  /** Logins of accounts with this credential, or the same request again and again. */
  sends: { credential: Credential } | { path: string; body: object }
  /** Undefined: each connection sends its next request as soon as it has its answer. */
  perSecond?: number
  connections: number
  durationS: number
  /** The beginning of it, in seconds: its answers are not counted. */
  settlingS: number
  /** How long an answer may take, in seconds [10]. */
  timeoutS?: number
}

export type RushResult = Awaited<ReturnType<typeof rush>>

async function rush({ url, sends, perSecond, connections, durationS, settlingS, timeoutS = 10 }: RushOptions) {
  const accounts = new Accounts('')
  const caller =
    'path' in sends
      ? repeats(sends.path, () => sends.body)
      : repeats('/v1/login', (number) => accounts.login(sends.credential, number))
  const loop = new ClosedLoop({ url, callers: connections, caller, perSecond, timeoutMs: timeoutS * 1_000 })
  await loop.start()
  const [settling, counted] = [await loop.countFor(settlingS), await loop.countFor(durationS - settlingS)]
  await loop.close()
  const { 0: _, ...statuses } = counted.tally.statuses
  const unanswered = (loop: Counted) => loop.tally.statuses[0] ?? 0
  const timeouts = settling.tally.counts.timeout + counted.tally.counts.timeout
  return {
    /** Answers by status; those before `settlingS` are left out. */
    statuses,
    /** Without an answer, of the whole duration, as all that follows. */
    timeouts,
    errors: unanswered(settling) + unanswered(counted) - timeouts,
    /** The slowest answer, in milliseconds. */
    slowestMs: Math.max(settling.slowestMs, counted.slowestMs),
  }
}

console.log(JSON.stringify(await rush(JSON.parse(process.argv[2] ?? ''))))
