/**
 * How far a line has come: the number of its first job. It never runs backwards, not even when Redis lost its data: numbers that are given
 * out then go on from the last one that this process knows of.
 */

/** What everyone in line may know. */
export interface Line {
  /** The number whose turn it is: 0 before the first. */
  serving: number
  /** The last number that was given out, as far as is known here. */
  last: number
  /** Numbers a second, those included that are passed over; 0 without workers. */
  perSecond: number
}

export interface LineReading {
  /** The last number that was given out. */
  last: number
  /** The number of the first deferred job; undefined without one, and for a moment after it was added. */
  first: number | undefined
  deferred: number
}

export interface LineProgress {
  observe(reading: LineReading): void
  /** This process gave out a number. */
  numbered(number: number): void
  current(): Omit<Line, 'perSecond'>
}

export function createLineProgress(): LineProgress {
  let [serving, last] = [0, 0]
  return {
    observe(reading) {
      last = Math.max(last, reading.last)
      // With nobody in line it is everybody's turn.
      serving = Math.max(serving, reading.deferred === 0 ? reading.last : (reading.first ?? 0))
    },
    numbered(number) {
      last = Math.max(last, number)
    },
    current: () => ({ serving, last }),
  }
}
