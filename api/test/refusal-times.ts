// When refusals are answered, on a clock of its own.
import { Pace, type PaceOptions } from '@spillway/queue/wait/refusal-pace'

/** Returns when a request that is refused at a time is answered, in milliseconds. */
export function refusalTimes(options: PaceOptions): (nowMs: number) => number {
  let nowMs = 0
  const pace = new Pace(options, () => nowMs)
  return (atMs) => {
    nowMs = atMs
    return nowMs + pace.delayMs()
  }
}
