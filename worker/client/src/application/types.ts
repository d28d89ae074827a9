/** The types of the public API. They import nothing: published declarations need no dependency. */

/** Algorithm and cost of new hashes. Defaults: OWASP's Password Storage Cheat Sheet. */
export type HashPolicy =
  | {
      algorithm: 'argon2id'
      /** Memory in KiB, from 8 for each lane to 1,048,576 [19456]. */
      memoryKib?: number
      /** Passes, 1 to 64 [2]. */
      time?: number
      /** Lanes, 1 to 16 [1]. */
      parallelism?: number
    }
  | {
      algorithm: 'bcrypt'
      /** The logarithm of its rounds, 4 to 17 [12]. */
      cost?: number
    }

/** Any logger with these methods fits, for instance Pino's. */
export interface Logger {
  error(facts: object, message: string): void
  warn(facts: object, message: string): void
  info(facts: object, message: string): void
  debug(facts: object, message: string): void
}

export interface PasswordsOptions {
  /**
   * The URL of the workers' Redis: `redis://`, `redis+sentinel://` or `redis+cluster://`, with TLS
   * `rediss` [a process beside this one hashes].
   */
  redis?: string | undefined
  /** With `redis`: the workers' SPILLWAY_SEAL_KEYS, `kid:base64` of 32 bytes, comma-separated. */
  sealKeys?: string | undefined
  /** With `redis`: QUEUE_PREFIX of the workers [{spillway}]. */
  queuePrefix?: string | undefined
  /** Algorithm and cost of new hashes [argon2id]. */
  policy?: HashPolicy | undefined
  /**
   * Whether a matching hash that is weaker than the policy is replaced, for calls that take the new
   * hash [when-weaker].
   */
  rehash?: 'never' | 'when-weaker' | undefined
  /**
   * How long a call without a deadline may take, in milliseconds [8000 in a process that listens as
   * a server; otherwise Infinity: no limit].
   */
  waitMs?: number | undefined
  /** Calls that may be outstanding, whatever the predicted wait [10000]. */
  maxOutstanding?: number | undefined
  /** Without `redis`: the number of hashes at a time [the processors that this process may use]. */
  concurrency?: number | undefined
  /** For tests: whether this process itself hashes, not one beside it [under Jest and Vitest]. */
  inProcess?: boolean | undefined
  /**
   * With `redis`, for tickets: marks a ticket as used in your database, until then. Returns true
   * unless it was marked before. If it throws, `redeem` rejects, and the ticket stays valid.
   */
  markUsed?: ((ticketId: string, until: Date) => boolean | Promise<boolean>) | undefined
  /** With `redis`: returns the current W3C trace context, for spans of workers. */
  traceparent?: (() => string | undefined) | undefined
  /** Where failures of connections and processes are logged [the console, warnings and errors]. */
  log?: Logger | undefined
}

export interface CallOptions {
  /** Cancels the call: it rejects with the signal's reason. Work that has not begun is dropped. */
  signal?: AbortSignal | undefined
  /**
   * The time after which the answer is useless, in epoch milliseconds or as a Date; Infinity for no
   * limit [waitMs from now].
   */
  deadline?: number | Date | undefined
}

/** Node's response: `response` in Express, `reply.raw` in Fastify, `ctx.res` in Koa. */
export interface ClientResponse {
  readonly destroyed: boolean
  readonly writableEnded: boolean
  once(event: 'close', listener: () => void): unknown
}

export interface VerifyOptions extends CallOptions {
  /**
   * Reads the stored hash again after the password has matched. If it was replaced meanwhile, the
   * password is verified with the new one: an old password does not match after its change. `null`
   * or undefined matches no password.
   */
  currentHash?: ReadHash | undefined
  /**
   * Stores a new hash in place of a matching one that is weaker than the policy. Store it only if
   * the stored hash is still `storedHash`, by a condition of the update. The call awaits it, and
   * rejects if it rejects [no hash is replaced].
   */
  onRehash?: ((newHash: string, storedHash: string) => void | Promise<void>) | undefined
  /**
   * Called if the algorithm or cost of the stored hash is not supported, which is also logged. The
   * call awaits it, then resolves with false. It takes as long as a hash of the policy.
   */
  onUnsupported?: (() => void | Promise<void>) | undefined
}

export interface BeginOptions {
  /** Who wants to log in, for instance a user's id: in the sealed ticket, returned by `redeem`. */
  subject?: string | undefined
  /** How long the ticket lives, in milliseconds [300000]. */
  lifeMs?: number | undefined
  /** Whether `redeem` returns a new hash for a matching one that is below the policy [false]. */
  rehash?: boolean | undefined
}

/** The stored hash of a user as it is now, from your database. */
type ReadHash = (subject?: string) => string | null | undefined | Promise<string | null | undefined>

export interface RedeemOptions {
  /**
   * Reads the stored hash of the subject after the password has matched. If it was replaced since
   * `begin`, the call rejects with `hash_replaced`: the password may be an old one.
   */
  currentHash: ReadHash
  /** How long to wait for the result, in milliseconds [8000]. */
  holdMs?: number | undefined
  /** Fires when the client has left: the call rejects with its reason; the ticket stays valid. */
  signal?: AbortSignal | undefined
}

/** `match` or `mismatch`, once; before that `waiting`, with the body of an answer of status 202. */
export type Redeemed =
  | {
      outcome: 'match'
      subject: string | undefined
      /** The hash that the password matched. */
      storedHash: string
      /** Store it only if the stored hash is still `storedHash`. */
      newHash: string | undefined
    }
  | { outcome: 'mismatch'; subject: string | undefined }
  | { outcome: 'waiting'; answer: WaitingAnswer }

/** The body that gateways send, which the client for pages follows. Times are in seconds. */
export interface WaitingAnswer {
  /** Replaces the ticket that was redeemed. */
  ticket: string
  retryAfter: number
  position?: number
  /** Undefined while nothing hashes, and while the queue is paused. */
  eta?: number
  /** Operators have paused the queue: nobody gets in until they resume it. */
  paused?: boolean
}

/** What hashes, and how busy it is. */
export interface Capacity {
  /** Where passwords are hashed: by the workers of a queue, or by the process beside this one. */
  by: 'workers' | 'process'
  /** Whether the rest is known: Redis answered a moment ago, or the process runs. */
  known: boolean
  /** Workers that are alive, or processes. */
  workers: number
  /** Hashes at a time, and hashes a second, of all workers or processes together. */
  slots: number
  jobsPerSecond: number
  /** The mean time of a hash, in milliseconds. */
  serviceMs: number
  /** Calls that wait, and calls in hand; of all applications that share the workers. */
  waiting: number
  active: number
  /** How long a call would take now, in milliseconds; Infinity when nothing hashes. */
  predictedWaitMs: number
}

/** Every call rejects with a `PasswordsError`, unless its own signal fires. */
export interface Passwords {
  /**
   * Call this before anything else for a login: it rejects if `verify` would, with `busy` or
   * `no_worker`. Resolves with options for the calls of this request, which are cancelled when its
   * client leaves.
   */
  admit(response?: ClientResponse): Promise<CallOptions>
  /**
   * Whether a password matches a stored hash: argon2id, argon2i, argon2d, bcrypt, and the formats
   * of other systems that workers know. For an unknown user pass `null`: it takes as long as a hash
   * of the policy, and never matches. Other texts, for instance an empty one, never match either.
   */
  verify(password: string, storedHash: string | null, options?: VerifyOptions): Promise<boolean>
  /**
   * Begins to verify as `verify` does. Resolves with a ticket when there is a result, or within
   * four seconds: the result may come later than a connection lives. The ticket contains the sealed
   * request. Tickets may fill 0.6 of what is hashed within the life of a ticket.
   */
  begin(password: string, storedHash: string | null, options?: BeginOptions): Promise<string>
  /**
   * Waits for the result of a ticket, and starts its request again if it was lost. The result is
   * given once, to any process with the same seal keys; without a queue, only to the process that
   * issued the ticket. Rejects with `invalid_ticket`, `ticket_expired`, `ticket_used`,
   * `hash_replaced`, or `busy`; after `busy` the ticket is still valid.
   */
  redeem(ticket: string, options: RedeemOptions): Promise<Redeemed>
  /** A new hash to store, by this policy [the policy of the options]. */
  hash(password: string, policy?: HashPolicy, options?: CallOptions): Promise<string>
  /** Whether a hash is below a policy [the options'] or of an unknown format. Hashes nothing. */
  needsRehash(storedHash: string, policy?: HashPolicy): boolean
  capacity(): Capacity
  /** Rejects waiting calls with `closed`, and disconnects. */
  close(): Promise<void>
}
