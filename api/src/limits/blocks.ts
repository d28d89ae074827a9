/**
 * Networks that operators have blocked until a time. The blocks are in the database, which survives
 * a loss of Redis and serves all gateways. Each gateway reads them at least once a second and refuses
 * from memory. While the database is away, the last blocks apply. Probes and documents stay open.
 */
import { type Logger, ThrottledWarning } from '@spillway/common/throttled-warning'
import { type Database, databaseProblem, Prisma, rawQuery } from '@spillway/prisma'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../http/problems.js'
import { AddressRanges, rangeOf } from '../http/requests.js'
import { Rounds } from '../rounds.js'
import { isAddressRange } from '../schemas/credentials.js'

/** The average pause between two reads. The longest is 1.5 times as long. */
export const READ_EVERY_MS = 600

/** The most blocks. Each request is compared with all of them, in 0.14 ms; with fifty times as many, in 11 ms. */
export const BLOCKS_MAX = 1_000

export type Block = { network: string; until: string; operator: string; reason: string; createdAt: string }

export class Blocks {
  readonly #database: Database
  readonly #rounds: Rounds
  readonly #log: Logger
  #networks = new AddressRanges([])
  #known = ''

  constructor(database: Database, log: Logger) {
    this.#database = database
    this.#log = log
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

  /** Without blocks, the address of a request is not read. */
  has(request: { readonly ip: string }): boolean {
    return this.#known !== '' && this.#networks.has(request.ip)
  }

  async read(): Promise<void> {
    const sql = Prisma.sql`SELECT network FROM blocks WHERE until > now() ORDER BY network LIMIT ${BLOCKS_MAX}`
    const networks = (await rawQuery<{ network: string }>(this.#database, sql)).map(({ network }) => network)
    const known = networks.join(' ')
    if (known === this.#known) return
    // A row that another program wrote must not stop the other blocks.
    const valid = networks.filter((network) => isAddressRange(network))
    const malformed = networks.filter((network) => !valid.includes(network))
    if (malformed.length > 0) this.#log.warn({ malformed }, 'blocks of no network are ignored')
    this.#networks = new AddressRanges(valid)
    this.#known = known
  }

  async list(database: Database): Promise<Block[]> {
    const sql = Prisma.sql`
      SELECT network, least(until, '9999-12-31') AS until, operator, reason,
        least(greatest(created_at, 'epoch'), '9999-12-31') AS "createdAt"
      FROM blocks WHERE until > now() ORDER BY network LIMIT ${BLOCKS_MAX}`
    const rows = await rawQuery<Block>(database, sql)
    const iso = (text: string) => new Date(text).toISOString()
    return rows.map((row) => ({ ...row, until: iso(row.until), createdAt: iso(row.createdAt) }))
  }

  /**
   * Blocks a network, or changes the end of its block. Resolves with its canonical form; undefined if
   * there are {@link BLOCKS_MAX} others.
   */
  async add(block: { network: string; until: Date; operator: string; reason: string }): Promise<string | undefined> {
    const { network, until, operator, reason } = block
    const sql = Prisma.sql`
      INSERT INTO blocks (network, until, operator, reason)
      SELECT asked.network, ${until}::timestamptz, ${operator}, ${reason} FROM (SELECT ${canonical(network)} AS network) AS asked
      WHERE (SELECT count(*) FROM blocks WHERE until > now() AND blocks.network <> asked.network) < ${BLOCKS_MAX}
      ON CONFLICT (network) DO UPDATE SET until = excluded.until, operator = excluded.operator, reason = excluded.reason,
        created_at = now()
      RETURNING network`
    const [added] = await rawQuery<{ network: string }>(this.#database, sql)
    await this.#readNow()
    return added?.network
  }

  /** Resolves with the canonical form of a network that was blocked. */
  async remove(network: string): Promise<string | undefined> {
    const sql = Prisma.sql`DELETE FROM blocks WHERE network = ${canonical(network)} RETURNING network`
    const [removed] = await rawQuery<{ network: string }>(this.#database, sql)
    await this.#readNow()
    return removed?.network
  }

  /** A change was made, even if this read fails: the next round reads it. */
  #readNow(): Promise<void> {
    return this.read().catch(() => undefined)
  }

  close(): Promise<void> {
    return this.#rounds.close()
  }
}

/** The canonical form, by PostgreSQL. A single IPv6 address keeps its /128. */
function canonical(network: string): Prisma.Sql {
  const range = Prisma.sql`network(${rangeOf(network)}::text::inet)::inet`
  return Prisma.sql`CASE family(${range}) WHEN 6 THEN text(${range}) ELSE abbrev(${range}) END`
}

/** Refuses requests from blocked networks before anything is counted or read. */
export const blocksPlugin = fp(
  async (app: FastifyInstance, { blocks }: { blocks: Blocks }) => {
    app.addHook('onRequest', (request, _reply, next) => {
      const isOpen = request.routeOptions.config.priority === 'always'
      if (isOpen || !blocks.has(request)) next()
      else next(new ApiError('network_blocked', { reason: 'network_blocked' }))
    })
  },
  { name: 'blocks' },
)
