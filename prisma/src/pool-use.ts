// The driver's pool, which Prisma keeps to itself, made countable.
import { PrismaPg } from '@prisma/adapter-pg'

export interface PoolUse {
  /** Connections that run a query now, and open ones that do not. */
  busy: number
  idle: number
  /** Queries that wait for a connection. */
  waiting: number
}

/** Prisma's adapter for PostgreSQL, which remembers the pool it opened last. */
export class ObservedPg extends PrismaPg {
  #pool: { totalCount: number; idleCount: number; waitingCount: number } | undefined

  override async connect(): ReturnType<PrismaPg['connect']> {
    const adapter = await super.connect()
    this.#pool = adapter.underlyingDriver()
    return adapter
  }

  use(): PoolUse {
    if (this.#pool === undefined) return { busy: 0, idle: 0, waiting: 0 }
    const { totalCount, idleCount, waitingCount } = this.#pool
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
  }
}
