// Statements of one kind that wait for the one on its way go together when it is back.
import { isDatabaseUnavailable } from './errors.js'

/** The rows of one statement, far within the statement timeout. */
const ROWS_MAX = 100
/** The next statement goes after this, because the one on its way may wait for a lock. */
const PATIENCE_MS = 25

/** A statement for one row, and the same for several. */
export interface Gathered<Row, Outcome> {
  one(row: Row): Promise<Outcome>
  /** Of rows with one key, the first goes with the others, each later one alone after it [none]. */
  keyOf?(row: Row): string
  /** An outcome for each row, in order [asks `one`]. Changes all or nothing, waits for no lock. */
  several(rows: readonly Row[]): Promise<readonly (Outcome | undefined)[]>
}

interface Waiting<Row, Outcome> {
  row: Row
  resolve(outcome: Outcome | PromiseLike<Outcome>): void
  reject(error: unknown): void
}

/**
 * Returns a function that runs the statement for a row, with the other rows of this turn of the
 * event loop or of the previous statement's time: a row never waits for others. Where the statement
 * for several fails, each row runs alone; while the database is away, all fail.
 */
export function gather<Row, Outcome>({ one, keyOf, several }: Gathered<Row, Outcome>): (row: Row) => Promise<Outcome> {
  const waiting: Waiting<Row, Outcome>[] = []
  /** What the waiting rows wait for: the end of the turn, or the statement on its way. */
  let awaited: object | undefined

  function begin(): void {
    awaited = undefined
    const batch = waiting.splice(0, ROWS_MAX)
    if (batch.length === 0) return
    const statement = {}
    awaited = statement
    const over = () => {
      clearTimeout(timer)
      if (awaited === statement) begin()
    }
    const timer = setTimeout(over, PATIENCE_MS)
    void run(batch).then(over)
  }

  /** Never rejects. */
  async function run(batch: Waiting<Row, Outcome>[]): Promise<void> {
    const alone = ({ row, resolve }: Waiting<Row, Outcome>) => resolve(one(row))
    const [first, ...others] = batch
    if (first !== undefined && others.length === 0) return await one(first.row).then(first.resolve, first.reject)
    const firsts = new Map<string | number, Waiting<Row, Outcome>>()
    for (const [n, each] of batch.entries()) {
      const key = keyOf?.(each.row) ?? n
      if (!firsts.has(key)) firsts.set(key, each)
    }
    const together = [...firsts.values()]
    try {
      const inOrder = await several(together.map(({ row }) => row))
      const outcomes = new Map(together.map((each, index) => [each, inOrder[index]]))
      for (const each of batch) {
        const outcome = outcomes.get(each)
        if (outcome === undefined) alone(each)
        else each.resolve(outcome)
      }
    } catch (error) {
      if (isDatabaseUnavailable(error)) for (const { reject } of batch) reject(error)
      else batch.forEach(alone)
    }
  }

  return (row) =>
    new Promise((resolve, reject) => {
      waiting.push({ row, resolve, reject })
      if (awaited !== undefined) return
      awaited = {}
      setImmediate(begin)
    })
}
