// A lane of the queue, as a fluid: logins in the order in which they came.

export interface Lane {
  depth(): number
  /** The longest wait of those who were served, in seconds. */
  longestWaitS(): number
  add(logins: number, atS: number): void
  /** Serves this many at most, first come first served, and gives how many more there could have been. */
  serve(logins: number, atS: number): number
  /** Moves this many at most, those who came first, to the end of another lane. */
  moveTo(other: Lane, logins: number): void
}

/** An empty lane. */
export function createLane(): Lane {
  const waiting: { logins: number; atS: number }[] = []
  let first = 0
  let depth = 0
  let longestWaitS = 0

  /** Takes this many at most from the front, tells of each part when it came, and gives how many there were too few. */
  function take(logins: number, onTaken: (taken: number, cameAtS: number) => void): number {
    let left = logins
    for (let next = waiting[first]; next && left > 0; next = waiting[first]) {
      const taken = Math.min(next.logins, left)
      onTaken(taken, next.atS)
      next.logins -= taken
      left -= taken
      depth -= taken
      if (next.logins === 0) first += 1
    }
    // What remains of rounding is nobody.
    if (first === waiting.length) depth = 0
    return left
  }

  return {
    depth: () => depth,
    longestWaitS: () => longestWaitS,
    add(logins, atS) {
      if (logins === 0) return
      waiting.push({ logins, atS })
      depth += logins
    },
    serve(logins, atS) {
      return take(logins, (_taken, cameAtS) => {
        longestWaitS = Math.max(longestWaitS, atS - cameAtS)
      })
    },
    moveTo(other, logins) {
      take(logins, (taken, cameAtS) => other.add(taken, cameAtS))
    },
  }
}
