// Combines statements of one kind that wait while another is running.
import { isDatabaseUnavailable } from './errors.js'

/** The most rows of one statement, far within the statement timeout. */
const ROWS_MAX = 100
/** How long to wait for the running statement, in milliseconds: it may be waiting for a lock. */
const PATIENCE_MS = 25

/** A statement for one row, and a statement that does the same for several rows. */
export interface Gathered<Row, Outcome> {
  one(row: Row): Promise<Outcome>
  /** Rows with the same key run separately, except the first [every row has its own key]. */
  keyOf?(row: Row): string
  /** An outcome for each row; undefined runs `one`. Changes all or nothing, waits for no lock. */
  several(rows: readonly Row[]): Promise<readonly (Outcome | undefined)[]>
}

interface Waiting<Row, Outcome> {
  row: Row
  resolve(outcome: Outcome | PromiseLike<Outcome>): void
  reject(error: unknown): void
}

/**
 * Returns a function that runs the statement for a row. It is combined with rows that came in the
 * same turn of the event loop or while the previous statement was running: a row never waits for
 * others. If the statement for several rows fails, each row runs separately. While the database is
 * away, all fail.
 */
export function gather<Row, Outcome>({ one, keyOf, several }: Gathered<Row, Outcome>): (row: Row) => Promise<Outcome> {
  const waiting: Waiting<Row, Outcome>[] = []
  /** What the waiting rows wait for: the end of the turn, or the running statement. */
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
    const keys = batch.map(({ row }, n) => keyOf?.(row) ?? n)
    const together = batch.filter((_, n) => keys.indexOf(keys[n] ?? n) === n)
    try {
      const outcomes = await several(together.map(({ row }) => row))
      for (const each of batch) {
        const outcome = outcomes[together.indexOf(each)]
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
