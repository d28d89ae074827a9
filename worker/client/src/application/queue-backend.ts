/** The workers of a queue as the backend of an application. */
import type { PasswordClient } from '@spillway/queue/client'
import { PasswordClientError } from '@spillway/queue/errors'
import { Estimates } from '@spillway/queue/estimates'
import type { Load } from '@spillway/queue/order'
import { parseRedisUrl } from '@spillway/queue/redis/url'
import { newId } from '@spillway/queue/wire/id'
import { DEFAULT_QUEUE_PREFIX, type JobName, type Requests, type Result } from '@spillway/queue/wire/job'
import { parseKeyring, refuseGuessableKeys, SEAL_KEYS } from '@spillway/queue/wire/seal'
import type { Backend, Followed, FollowOptions, PerformOptions } from './backend.js'
import { PasswordsError } from './passwords-error.js'
import { followTicket } from './redemption.js'
import type { ApplicationTicket } from './tickets.js'
import type { Logger } from './types.js'

/** How long the first calls wait for the first reading of the queue. */
const FIRST_READING_MS = 2_000
const UNKNOWN = new Estimates().load()

interface QueueOptions {
  redis: string
  sealKeys: string
  queuePrefix?: string | undefined
  traceparent?: (() => string | undefined) | undefined
  log: Logger
}

export class QueueBackend implements Backend {
  readonly by = 'workers'
  readonly #opening: Promise<PasswordClient>
  /** Undefined until its code is loaded. */
  #client: PasswordClient | undefined

  /** Throws for invalid keys and addresses. Redis may be unreachable. */
  constructor({ redis, sealKeys, queuePrefix, traceparent, log }: QueueOptions) {
    refuseGuessableKeys(SEAL_KEYS, sealKeys)
    parseRedisUrl(redis)
    const keyring = parseKeyring(sealKeys)
    // Loaded only for applications that have a queue: it takes longer to load than many programs
    // run.
    this.#opening = import('@spillway/queue/client').then(({ PasswordClient }) => {
      const prefix = queuePrefix ?? DEFAULT_QUEUE_PREFIX
      this.#client = new PasswordClient({ redisUrl: redis, prefix, keyring, log, background: true, traceparent })
      return this.#client
    })
    // The calls report the error.
    this.#opening.catch(() => undefined)
  }

  load(): Load {
    return this.#client?.estimates.load() ?? UNKNOWN
  }

  now(): number {
    return this.#client?.now() ?? Date.now()
  }

  async whenKnown(waitMs: number): Promise<void> {
    await (await this.#opening).estimates.whenKnown(Math.min(waitMs, FIRST_READING_MS))
  }

  async perform<Name extends JobName>(
    name: Name,
    request: Requests[Name],
    { waitMs, signal }: PerformOptions,
  ): Promise<Result | undefined> {
    // Not awaited once it is open: a call counts as soon as it is admitted.
    const client = this.#client ?? (await this.#opening)
    refuseOtherKeys(client)
    const endsAt = performance.now() + waitMs
    const job = { id: newId(), name, deadline: client.now() + Math.ceil(waitMs) }
    let result: Result | undefined
    try {
      const submitted = await client.submit({ job, request, admitted: client.admitTo('open'), presentMs: waitMs })
      result = await submitted.result(Math.max(0, endsAt - performance.now()), signal)
      return result
    } catch (error) {
      if (isAbort(error)) return undefined
      throw asPasswordsError(error)
    } finally {
      // Redis may have taken a job whose adding has failed.
      if (result === undefined) void client.remove(job)
    }
  }

  async follow(ticket: ApplicationTicket, options: FollowOptions): Promise<Followed> {
    const client = await this.#opening
    const place = () => {
      refuseOtherKeys(client)
      return options.place()
    }
    return await followTicket(client, ticket, { ...options, place }).catch((error: unknown) => {
      throw asPasswordsError(error)
    })
  }

  async close(): Promise<void> {
    await (await this.#opening).close()
  }
}

function refuseOtherKeys(client: PasswordClient): void {
  if (!client.estimates.hasOtherKeys()) return
  throw new PasswordsError('wrong_keys', `the workers have another ${SEAL_KEYS} than this application`)
}

function isAbort(error: unknown): boolean {
  return error instanceof PasswordClientError && error.code === 'wait_aborted'
}

function asPasswordsError(error: unknown): unknown {
  if (!(error instanceof PasswordClientError)) return error
  if (error.code === 'request_too_long')
    return new PasswordsError('unsupported_password', 'the password is longer than the queue takes')
  return new PasswordsError('queue_unavailable', error.message, { cause: error })
}
