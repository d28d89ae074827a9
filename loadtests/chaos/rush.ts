// A process of its own that sends requests on connections that are kept, and does nothing else: `node rush.ts <json>`. Prints its
// result as a line of JSON. autocannon because it costs a fifth of the processor time of Node's own client.
import autocannon from 'autocannon'
import { type Credential, createAccounts } from '../load/accounts.ts'

export interface RushOptions {
  url: string
  /** Logins of accounts with this credential, or the same request again and again. */
  sends: { credential: Credential } | { path: string; body: object }
  /** Undefined: each connection sends its next request as soon as it has its answer. */
  perSecond?: number
  connections: number
  durationS: number
  /** The beginning of it that is not counted, in seconds. */
  settlingS: number
  /** How long an answer may take, in seconds [10]. */
  timeoutS?: number
}

const TIMEOUT_S = 10

export type RushResult = Awaited<ReturnType<typeof rush>>

async function rush(options: RushOptions) {
  const { url, sends, perSecond, connections, durationS, settlingS, timeoutS = TIMEOUT_S } = options
  const accounts = createAccounts('')
  let caller = 0
  const nextBody = () => ('path' in sends ? sends.body : accounts.login(sends.credential, caller++))
  const countedFromMs = performance.now() + settlingS * 1_000
  const statuses: Record<string, number> = {}
  const { timeouts, errors, latency } = await new Promise<autocannon.Result>((resolve, reject) => {
    const run = autocannon(
      {
        url: url + ('path' in sends ? sends.path : '/v1/login'),
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        connections,
        ...(perSecond !== undefined && { overallRate: perSecond }),
        duration: durationS,
        timeout: timeoutS,
        setupClient: (client) => client.setBody(JSON.stringify(nextBody())),
      },
      (error: unknown, result: autocannon.Result) => (error ? reject(error) : resolve(result)),
    )
    run.on('response', (_, status) => {
      if (performance.now() >= countedFromMs) statuses[status] = (statuses[status] ?? 0) + 1
    })
  })
  return {
    /** Answers by status; those before `settlingS` are left out. */
    statuses,
    /** Without an answer, of the whole duration, as all that follows. */
    timeouts,
    errors: errors - timeouts,
    /** The slowest answer, in milliseconds. */
    slowestMs: latency.max,
  }
}

console.log(JSON.stringify(await rush(JSON.parse(process.argv[2] ?? ''))))
