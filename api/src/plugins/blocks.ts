/**
 * Networks that operators have blocked until a time. They are in the database, which survives Redis
 * and is one for all gateways; each gateway reads them twice a second and refuses from memory. While
 * the database is away, the blocks read last hold. Probes and documents stay open.
 */
import { ThrottledWarning, type Warnings } from '@spillway/common/throttled-warning'
import { type Database, databaseProblem, Prisma, rawQuery } from '@spillway/prisma'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { Rounds } from '../rounds.js'
import { AddressRanges, networkOf } from './client-network.js'
import { ApiError } from './errors.js'

/** The average pause between two readings; the longest is 1.5 times as long. */
export const READ_EVERY_MS = 400

export type Block = { network: string; until: string; operator: string; reason: string; createdAt: string }

export class Blocks {
  readonly #database: Database
  readonly #rounds: Rounds
  #networks = new AddressRanges([])
  #known = ''

  constructor(database: Database, log: Warnings) {
    this.#database = database
    const unread = new ThrottledWarning(log, 'blocked networks could not be read')
    this.#rounds = new Rounds({
      periodMs: READ_EVERY_MS,
      round: async () => {
        await this.read()
        unread.recovered()
      },
      onFailure: (error) => unread.warn(new Error(databaseProblem(error))),
    })
  }

  /** Without blocks, the address of a request is not looked up. */
  has(request: { readonly ip: string }): boolean {
    return this.#known !== '' && this.#networks.has(request.ip)
  }

  async read(): Promise<void> {
    const sql = Prisma.sql`SELECT network FROM blocks WHERE until > now() ORDER BY network`
    const networks = (await rawQuery<{ network: string }>(this.#database, sql)).map(({ network }) => network)
    const known = networks.join(' ')
    if (known === this.#known) return
    this.#networks = new AddressRanges(networks)
    this.#known = known
  }

  async list(): Promise<Block[]> {
    const sql = Prisma.sql`
      SELECT network, until, operator, reason, created_at AS "createdAt" FROM blocks WHERE until > now() ORDER BY network`
    const rows = await rawQuery<Block>(this.#database, sql)
    const iso = (text: string) => new Date(text).toISOString()
    return rows.map((row) => ({ ...row, until: iso(row.until), createdAt: iso(row.createdAt) }))
  }

  /** Blocks a network, or blocks it until another time. Resolves with its one form. */
  async add(block: Pick<Block, 'network' | 'until' | 'operator' | 'reason'>): Promise<string> {
    const { network, until, operator, reason } = block
    const sql = Prisma.sql`
      INSERT INTO blocks (network, until, operator, reason)
      VALUES (${canonical(network)}, ${until}::timestamptz, ${operator}, ${reason})
      ON CONFLICT (network) DO UPDATE SET until = excluded.until, operator = excluded.operator, reason = excluded.reason,
        created_at = now()
      RETURNING network`
    const [added] = await rawQuery<{ network: string }>(this.#database, sql)
    await this.read()
    return added?.network ?? network
  }

  /** Resolves with the one form of a network that was blocked. */
  async remove(network: string): Promise<string | undefined> {
    const sql = Prisma.sql`DELETE FROM blocks WHERE network = ${canonical(network)} RETURNING network`
    const [removed] = await rawQuery<{ network: string }>(this.#database, sql)
    await this.read()
    return removed?.network
  }

  close(): Promise<void> {
    return this.#rounds.close()
  }
}

/** The one form of a network, by PostgreSQL; an IPv6 address stands for its /64, as in all counts. */
function canonical(network: string): Prisma.Sql {
  const range = network.includes('/') ? network : networkOf(network)
  return Prisma.sql`abbrev(network(${range}::text::inet)::inet)`
}

/** Refuses requests from blocked networks before anything is counted or read. */
export const blocksPlugin = fp(
  async (app: FastifyInstance, { blocks }: { blocks: Pick<Blocks, 'has'> }) => {
    app.addHook('onRequest', (request, _reply, next) => {
      const isOpen = request.routeOptions.config.priority === 'always'
      if (isOpen || !blocks.has(request)) next()
      else next(new ApiError('network_blocked', { reason: 'network_blocked' }))
    })
  },
  { name: 'blocks' },
)
