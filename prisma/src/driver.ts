// Prisma's driver adapter, extended: its pool can be observed, and SQL can run on it directly, past Prisma's client.
import { PrismaPg } from '@prisma/adapter-pg'

export interface PoolUse {
  /** Connections that run a query, and idle ones. */
  busy: number
  idle: number
  /** Queries that wait for a connection. */
  waiting: number
}

type Adapter = Awaited<ReturnType<PrismaPg['connect']>>

/** The type of every argument: the driver converts by the value, and PostgreSQL infers the type from the statement. */
const ofAnyType = { scalarType: 'unknown', arity: 'scalar' } as const

/** Prisma's adapter for PostgreSQL, with access to its pool. */
export class Driver extends PrismaPg {
  #open: Adapter | undefined

  override async connect(): Promise<Adapter> {
    const adapter = await super.connect()
    // While a query hangs, Prisma's ROLLBACK stays unsent behind it, and Prisma releases the connection all the same: the next user's
    // statements would join that transaction, and never be committed.
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

  /** The rows of a statement, by column name; undefined when the adapter is not connected. */
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
