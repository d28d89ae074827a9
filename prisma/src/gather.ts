// Statements of one kind that wait together go together: while one is on its way, the next ones
// gather, and go as one when it is back.
import { isDatabaseUnavailable } from './errors.js'

/** The rows of one statement, far within the statement timeout of 5 s. */
const ROWS_MAX = 100
/** The next statement waits no longer for one that takes longer: it may wait for a lock. */
const PATIENCE_MS = 25

/** A statement for one row, and the same for several. */
export interface Gathered<Row, Outcome> {
  one(row: Row): Promise<Outcome>
  /** Of rows with one key, the first goes with the others, each later one alone after it [none]. */
  keyOf?(row: Row): string
  /**
   * Resolves with an outcome for each row, in order; undefined for a row that `one` is to be asked
   * for. It changes all or nothing, and waits for no lock.
   */
  several(rows: readonly Row[]): Promise<readonly (Outcome | undefined)[]>
}

interface Waiting<Row, Outcome> {
  row: Row
  resolve(outcome: Outcome | PromiseLike<Outcome>): void
  reject(error: unknown): void
}

/**
 * Returns a function that runs the statement for a row. Rows of one turn of the event loop go
 * together, and so do rows that came while the previous statement ran: a row never waits for others.
 * Where the statement for several fails, each row runs alone; while the database is away, all fail.
 */
export function gather<Row, Outcome>({ one, keyOf, several }: Gathered<Row, Outcome>): (row: Row) => Promise<Outcome> {
  const waiting: Waiting<Row, Outcome>[] = []
  /** The statement that the waiting rows wait for: the end of the turn, or the one on its way. */
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
    const together = keyOf === undefined ? batch : firstOfEach(batch, ({ row }) => keyOf(row))
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

/** The first of each key, in order. */
function firstOfEach<Each>(all: readonly Each[], keyOf: (each: Each) => string): Each[] {
  const firsts = new Map<string, Each>()
  for (const each of all) if (!firsts.has(keyOf(each))) firsts.set(keyOf(each), each)
  return [...firsts.values()]
}
