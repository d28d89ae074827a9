// The driver under Prisma's client, which keeps it to itself: its pool made countable, and SQL of our own run on it directly.
import { PrismaPg } from '@prisma/adapter-pg'

export interface PoolUse {
  /** Connections that run a query now, and open ones that do not. */
  busy: number
  idle: number
  /** Queries that wait for a connection. */
  waiting: number
}

type Adapter = Awaited<ReturnType<PrismaPg['connect']>>

/** Said of every argument: the driver goes by its value, and PostgreSQL by the statement. */
const ofAnyType = { scalarType: 'unknown', arity: 'scalar' } as const

/** Prisma's adapter for PostgreSQL, which remembers what it has open. */
export class Driver extends PrismaPg {
  #open: Adapter | undefined

  override async connect(): Promise<Adapter> {
    const adapter = await super.connect()
    // A server that does not answer leaves Prisma's ROLLBACK unsent, in the queue behind the query that hangs, and Prisma gives
    // the connection back all the same: whoever came next would be answered, and never committed.
    adapter.underlyingDriver().on('release', (_error, client) => {
      if (client.getTransactionStatus() !== 'I') void client.end()
    })
    const dispose = adapter.dispose.bind(adapter)
    adapter.dispose = () => {
      if (this.#open === adapter) this.#open = undefined
      return dispose()
    }
    this.#open = adapter
    return adapter
  }

  /** The rows of a statement, by the names of their columns; undefined when nothing is open. */
  async query(sql: string, args: unknown[]): Promise<Record<string, unknown>[] | undefined> {
    const result = await this.#open?.queryRaw({ sql, args, argTypes: args.map(() => ofAnyType) })
    return result?.rows.map((row) => Object.fromEntries(result.columnNames.map((name, index) => [name, row[index]])))
  }

  use(): PoolUse {
    if (this.#open === undefined) return { busy: 0, idle: 0, waiting: 0 }
    const { totalCount, idleCount, waitingCount } = this.#open.underlyingDriver()
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
  }
}
