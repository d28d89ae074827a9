// A gateway of one processor on a clock of its own, which reads, refuses and serves by turns.
import { setImmediate as flushed } from 'node:timers/promises'
import { LoadShedder, type Priority, type Work } from '../src/plugins/load-shedding/load-shedder.ts'
import type { Clock } from '../src/plugins/load-shedding/overload.ts'

/** A clock that stands still until it is turned. */
class StandingClock implements Clock {
  nowMs = 0
  #later: { atMs: number; callback: () => void }[] = []

  readonly now = () => this.nowMs
  afterTurn(callback: () => void): void {
    this.after(0, callback)
  }
  after(ms: number, callback: () => void): void {
    this.#later.push({ atMs: this.nowMs + ms, callback })
  }

  /** Ends a turn of the event loop. */
  async endTurn(lastedMs: number): Promise<void> {
    this.nowMs += lastedMs
    const due = this.#later.filter(({ atMs }) => atMs <= this.nowMs)
    this.#later = this.#later.filter(({ atMs }) => atMs > this.nowMs)
    for (const { callback } of due) {
      callback()
      await flushed()
    }
  }

  /** Turns of a millisecond until then. */
  async turnTo(ms: number): Promise<void> {
    while (this.nowMs < ms) await this.endTurn(1)
  }
}

export function clocked(connections: number): { shedder: LoadShedder; clock: StandingClock } {
  const clock = new StandingClock()
  return { shedder: new LoadShedder(connections, clock), clock }
}

export interface Arrival {
  atMs: number
  priority: Priority
}

export interface End {
  arrival: Arrival
  served: boolean
  endMs: number
}

export interface Simulation {
  arrivals: readonly Arrival[]
  /** The processor time of serving the nth request, beyond reading it, in milliseconds [1]. */
  serveMs?: (nth: number) => number
  /** How long after its beginning a request fails without a connection to the database [never] */
  failsAfterMs?: number
  /** When the process stands still, and for how long. */
  pauses?: readonly { atMs: number; forMs: number }[]
}

/** A fortieth of serving, as measured. */
const REFUSE_MS = 0.025
const READ_MS = 0.1
/** The processor time of a failed request: a slow gateway has done most of the work by then. */
const FAIL_MS = 4
const IDLE_TURN_MS = 1

/** Resolves when everyone was served or refused. */
export async function simulate({
  arrivals: unordered,
  serveMs = () => 1,
  failsAfterMs = Number.POSITIVE_INFINITY,
  pauses = [],
}: Simulation): Promise<End[]> {
  const arrivals = unordered.toSorted((a, b) => a.atMs - b.atMs)
  let nowMs = 0
  let endTurn: (() => void) | undefined
  let timers: { atMs: number; callback: () => void }[] = []
  const shedder = new LoadShedder(10, {
    now: () => nowMs,
    afterTurn: (callback) => (endTurn = callback),
    after: (ms, callback) => void timers.push({ atMs: nowMs + ms, callback }),
  })
  const ends: End[] = []
  const begun: { arrival: Arrival; work: Work; begunMs: number }[] = []
  const stops = [...pauses]
  let read = 0
  let served = 0

  while (ends.length < arrivals.length) {
    const [stop] = stops
    if (stop !== undefined && nowMs >= stop.atMs) {
      nowMs += stop.forMs
      stops.shift()
    }
    const due = timers.filter(({ atMs }) => atMs <= nowMs)
    timers = timers.filter(({ atMs }) => atMs > nowMs)
    for (const { callback } of due) callback()

    const turnMs = nowMs
    for (let next = arrivals[read]; next !== undefined && next.atMs <= turnMs; next = arrivals[read]) {
      const arrival = next
      read++
      if (!shedder.admits(arrival.priority)) {
        nowMs += REFUSE_MS
        ends.push({ arrival, served: false, endMs: nowMs })
        continue
      }
      nowMs += READ_MS
      void shedder
        .begin(arrival.priority, () => false)
        .then((work) => {
          if (work === undefined) ends.push({ arrival, served: false, endMs: nowMs })
          else begun.push({ arrival, work, begunMs: nowMs })
        })
    }
    await flushed()
    // As many as are answered by the database in one turn.
    for (const { arrival, work, begunMs } of begun.splice(0, 10)) {
      const isServed = nowMs - begunMs <= failsAfterMs
      nowMs += isServed ? serveMs(served++) - (arrival.priority === 'always' ? 0 : READ_MS) : FAIL_MS
      work.end(isServed)
      ends.push({ arrival, served: isServed, endMs: nowMs })
    }
    await flushed()
    const end = endTurn
    endTurn = undefined
    end?.()
    if (nowMs === turnMs) nowMs += IDLE_TURN_MS
  }
  return ends
}
