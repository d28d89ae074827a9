// The calls whose cost is measured: what each of many callers does over and over.
import { setTimeout as sleep } from 'node:timers/promises'
import { type ApiAnswer, respondAsync } from '@spillway/infra/rig/api-client'
import { comeBack } from '../load/visit.ts'
import type { CostSystem } from './system.ts'

/** One call to the end; resolves when it was answered as it should be. */
export type Call = () => Promise<void>

export interface Costed {
  name: string
  title: string
  /** In flight at a time. */
  callers: number
  /** Which gateway it goes to: one whose queue is full, or one with a slow worker, before which people wait [one with a worker]. */
  at?: 'full' | 'slow'
  /** How long a measurement lasts, in seconds [as asked]. Such a call is measured where it is named. */
  seconds?: number
  /** Nothing is called: the time of the first threads counts. */
  isAtRest?: boolean
  /** Whether the floor has it. */
  hasFloor?: boolean
  /** The call of one caller. */
  open(system: CostSystem): Promise<Call> | Call
}

/** In flight: enough that what goes together does. */
const CALLERS = 32
/** People who wait together. */
const PEOPLE = 1_000
const MINUTE_S = 60
/** A gateway that does nothing else holds a refusal for three seconds, beyond a hundred a second. */
const REFUSED_CALLERS = 2_400

export const costed: readonly Costed[] = [
  // The first, before a second gateway is there.
  { name: 'rest', title: 'a second at rest', callers: 1, isAtRest: true, open: () => () => sleep(1_000) },
  {
    name: 'login',
    title: 'held login',
    callers: CALLERS,
    hasFloor: true,
    open:
      ({ api, credentials }) =>
      async () => {
        expect(200, await api.login(credentials()))
      },
  },
  {
    name: 'ticket',
    title: 'ticket and its redeeming',
    callers: CALLERS,
    open:
      ({ api, credentials }) =>
      async () => {
        let answer = expect(202, await api.login(credentials(), respondAsync))
        while (answer.status === 202) answer = await api.redeem(answer.body.ticket)
        expect(200, answer)
      },
  },
  {
    name: 'refresh',
    title: 'refresh',
    callers: CALLERS,
    async open({ api, credentials }) {
      let { refreshToken } = expect(200, await api.login(credentials())).body
      return async () => {
        const { body } = expect(200, await api.refresh(refreshToken))
        refreshToken = body.refreshToken
      }
    },
  },
  {
    name: 'refusal',
    title: 'refusal before the line',
    callers: REFUSED_CALLERS,
    at: 'full',
    async open({ full, credentials }) {
      const { api } = await full()
      // The first one fills the queue, which the gateway reads some times a second.
      while ((await api.login(credentials(), respondAsync)).status === 202);
      return async () => {
        expect(503, await api.login(credentials()))
      }
    },
  },
  {
    name: 'made-up',
    title: 'made-up ticket',
    callers: REFUSED_CALLERS,
    hasFloor: true,
    open:
      ({ api }) =>
      async () => {
        expect(400, await api.redeem('made up'))
      },
  },
  {
    name: 'minute',
    title: "a person's minute in line",
    callers: PEOPLE,
    at: 'slow',
    seconds: MINUTE_S,
    async open({ slow }) {
      const { api, url, credentials } = await slow()
      let answer = expect(202, await api.login(credentials(), respondAsync))
      const { ticket } = answer.body
      return async () => {
        const untilMs = performance.now() + MINUTE_S * 1_000
        const signal = AbortSignal.timeout(MINUTE_S * 1_000)
        while (answer.status === 202 && !signal.aborted) {
          await comeBack(answer, { url, signal }).catch(() => undefined)
          if (!signal.aborted) answer = await api.redeem(ticket, { signal })
        }
        // A few are in before the minute is over, and nobody takes their places.
        await sleep(Math.max(0, untilMs - performance.now()))
      }
    },
  },
  {
    name: 'healthz',
    title: '/healthz',
    callers: CALLERS,
    hasFloor: true,
    open:
      ({ api }) =>
      async () => {
        expect(200, await api.get('/healthz'))
      },
  },
]

function expect(status: number, answer: ApiAnswer): ApiAnswer {
  if (answer.status === status) return answer
  throw new Error(`A call was answered with ${answer.status} instead of ${status}: ${answer.failure ?? answer.text}`)
}
