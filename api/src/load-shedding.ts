/**
 * Load shedding: which requests to refuse because this gateway itself is behind, however many workers there are.
 *
 * What counts is work of the gateway's own: a request is in hand until it is answered, less the time for which it is held for a
 * worker. Only so many are in hand at a time as are answered in a moment; the others wait in line, those first that
 * were promised an answer. A burst may wait for as long as people do not mind. When the line has not been empty for longer than
 * that takes, waiting serves nobody: from then on it is kept as short as what is done in a moment, and whoever finds it full
 * is refused before anything is made of the request. A single pause, of whatever length, changes nothing.
 *
 * After CoDel (RFC 8289) as Facebook applies it to requests ("Fail at Scale", ACM Queue 13/8): delay and not length, and for an
 * interval and not for a moment. @fastify/under-pressure looks at the event loop's delay alone, once a second, and then refuses
 * everything or nothing; a line for the connections to the database leaves that delay short.
 */

/**
 * Requests in hand at a time: as many as are answered in this time, in milliseconds, so that each takes about that long itself. Fewer
 * cost more each, because what is sent together is sent in one; with twice as many, queries wait too long for a connection.
 */
const IN_HAND_MS = 500
/** The least, from which it begins: enough for a processor, also where Redis is 50 ms away. */
const IN_HAND = 100
/** For each connection to PostgreSQL, where that comes to more: fewer would leave some idle. */
const PER_CONNECTION = 3

/**
 * How long a request may wait in line, in milliseconds. As many may as are answered in that time: to take in more, only to refuse
 * them later, costs what the others wait for. How many that is at the beginning of a burst is not known.
 */
const BURST_WAIT_MS = 1_500
const BURST_LINE = 500
/** The same once waiting serves nobody. The line must not run empty, or the processor would. */
const SHEDDING_WAIT_MS = 100
const SHORTEST_LINE = 16
/** How long there must have been a line at every moment for that, in milliseconds. */
const SUSTAINED_MS = 1_500
/** Without a request for this long, in milliseconds, what was before says nothing of now; nor after the process stood still. */
const IDLE_MS = 500
/** A turn of the event loop that takes longer than this to read what has come is as bad as a line, in milliseconds. */
const TURN_MS = 100
/** Shedding is over when nothing had to be refused for this long, in milliseconds. */
const CALM_MS = 1_000

/** Rates and delays are averaged over this, in milliseconds, and a new rate counts for so much. */
const WINDOW_MS = 100
const SMOOTHING = 0.3
/** How often those who have waited too long are looked for, in milliseconds. */
const LOOK_MS = 50

/**
 * `new` is refused first. `promised` goes on with what was begun: a ticket, a session. `always` costs next to nothing, and is
 * what others judge this gateway by.
 */
export type Priority = 'new' | 'promised' | 'always'

/** One request's work here. */
export interface Work {
  /** It waits for a worker. */
  pause(): void
  resume(): void
  /** It is answered. More than one end is one. */
  end(): void
}

export interface LoadShedder {
  /** Whether a request whose head was just read is to be read on. */
  admits(priority: Priority): boolean
  /** Resolves when work on a request may begin; with undefined when it is refused. */
  begin(priority: Priority, isGone: () => boolean): Promise<Work | undefined>
  /** Whether any request was refused of late. */
  isShedding(): boolean
  /** Requests a second that are answered of late. */
  perSecond(): number
  inHand(): number
  /** How long requests of late waited until they were begun, on average, in milliseconds. */
  delayMs(): number
}

export interface Clock {
  /** Milliseconds, never backwards. */
  now(): number
  /** Calls once all that can be read now has been. */
  afterTurn(callback: () => void): void
  after(ms: number, callback: () => void): void
}

const systemClock: Clock = {
  now: () => performance.now(),
  afterTurn: (callback) => void setImmediate(callback),
  after: (ms, callback) => void setTimeout(callback, ms),
}

interface Waiting {
  sinceMs: number
  isGone(): boolean
  begin(work: Work | undefined): void
}

/** @param connections to PostgreSQL, at the most */
export function createLoadShedder(connections: number, clock: Clock = systemClock): LoadShedder {
  const { now } = clock
  const leastRoom = Math.max(IN_HAND, PER_CONNECTION * connections)
  const lines: Record<Exclude<Priority, 'always'>, Waiting[]> = { promised: [], new: [] }
  let inHand = 0
  /** The turn of the event loop in which requests are being read. */
  let turnStartMs: number | undefined
  let lastTurnMs = now()
  let window = { startMs: now(), begun: 0, waitedMs: 0, ended: 0 }
  let endedPerMs = 0
  let delayMs = 0
  let lineSinceMs: number | undefined
  /** Set while waiting serves nobody. */
  let sheddingSinceMs: number | undefined
  let refusedMs = Number.NEGATIVE_INFINITY
  let isLooking = false

  function currentTurn(): number {
    if (turnStartMs !== undefined) return turnStartMs
    turnStartMs = now()
    if (turnStartMs - lastTurnMs > IDLE_MS) lineSinceMs = undefined
    if (sheddingSinceMs !== undefined && turnStartMs - Math.max(sheddingSinceMs, refusedMs) > CALM_MS)
      sheddingSinceMs = undefined
    clock.afterTurn(endTurn)
    return turnStartMs
  }

  function endTurn(): void {
    const endMs = now()
    const tookMs = endMs - (turnStartMs ?? endMs)
    turnStartMs = undefined
    lastTurnMs = endMs
    if (lines.promised.length + lines.new.length === 0 && tookMs <= TURN_MS) lineSinceMs = undefined
    else lineSinceMs ??= endMs
    if (lineSinceMs !== undefined && endMs - lineSinceMs >= SUSTAINED_MS) sheddingSinceMs ??= endMs
    if (endMs - window.startMs >= WINDOW_MS) closeWindow(endMs)
  }

  function closeWindow(endMs: number): void {
    const { startMs, begun, waitedMs, ended } = window
    endedPerMs += SMOOTHING * (ended / (endMs - startMs) - endedPerMs)
    delayMs = begun === 0 ? delayMs : waitedMs / begun
    window = { startMs: endMs, begun: 0, waitedMs: 0, ended: 0 }
  }

  function room(): number {
    return Math.max(leastRoom, endedPerMs * IN_HAND_MS)
  }

  function sheds(priority: Priority): boolean {
    return priority === 'new' && sheddingSinceMs !== undefined
  }

  function longestLine(priority: Priority): number {
    if (sheds(priority)) return Math.max(SHORTEST_LINE, endedPerMs * SHEDDING_WAIT_MS)
    return Math.max(BURST_LINE, endedPerMs * BURST_WAIT_MS)
  }

  function longestWaitMs(priority: Priority): number {
    return sheds(priority) ? SHEDDING_WAIT_MS + LOOK_MS : BURST_WAIT_MS
  }

  /** Begins what there is room for. */
  function advance(): void {
    for (const priority of ['promised', 'new'] as const) {
      const line = lines[priority]
      while (inHand < room()) {
        const next = line.shift()
        if (next === undefined) break
        if (next.isGone()) next.begin(undefined)
        else next.begin(newWork(next.sinceMs))
      }
    }
  }

  function refuseOverdue(): void {
    const nowMs = now()
    for (const priority of ['promised', 'new'] as const) {
      const line = lines[priority]
      for (
        let first = line[0];
        first !== undefined && nowMs - first.sinceMs > longestWaitMs(priority);
        first = line[0]
      ) {
        line.shift()
        refusedMs = nowMs
        first.begin(undefined)
      }
    }
    isLooking = lines.promised.length + lines.new.length > 0
    if (isLooking) clock.after(LOOK_MS, refuseOverdue)
  }

  function newWork(sinceMs: number): Work {
    window.begun++
    window.waitedMs += now() - sinceMs
    inHand++
    let state: 'in hand' | 'paused' | 'ended' = 'in hand'
    function leave(to: 'paused' | 'ended'): void {
      const wasInHand = state === 'in hand'
      if (state !== 'ended' && to === 'ended') window.ended++
      if (state !== 'ended') state = to
      if (!wasInHand) return
      inHand--
      advance()
    }
    return {
      pause: () => leave('paused'),
      resume() {
        if (state !== 'paused') return
        state = 'in hand'
        inHand++
      },
      end: () => leave('ended'),
    }
  }

  return {
    admits(priority) {
      if (priority === 'always') return true
      const startMs = currentTurn()
      const isLate = sheds(priority) && now() - startMs > TURN_MS
      if (!isLate && lines[priority].length < longestLine(priority)) return true
      refusedMs = now()
      return false
    },
    async begin(priority, isGone) {
      if (priority === 'always') return unlimited
      currentTurn()
      const line = lines[priority]
      const sinceMs = now()
      if (inHand < room() && line.length === 0) return newWork(sinceMs)
      if (line.length >= longestLine(priority)) {
        refusedMs = sinceMs
        return undefined
      }
      return new Promise((begin) => {
        line.push({ sinceMs, isGone, begin })
        if (isLooking) return
        isLooking = true
        clock.after(LOOK_MS, refuseOverdue)
      })
    },
    isShedding: () => now() - refusedMs <= CALM_MS,
    perSecond: () => endedPerMs * 1_000,
    inHand: () => inHand,
    delayMs: () => (now() - lastTurnMs > CALM_MS ? 0 : delayMs),
  }
}

const nothing = () => undefined
const unlimited: Work = { pause: nothing, resume: nothing, end: nothing }
