/**
 * Our connections to Redis: ioredis 6.0 with hooks into its private parts (see CONTRIBUTING). An
 * application's own connections are left as they are.
 */
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import handler from 'ioredis/built/DataHandler.js'

type Sent = Parameters<Redis['sendCommand']>
type Item = Parameters<Redis['handleReconnection']>[1]

interface Reconnecting {
  status: string
  /** Commands in flight when the connection broke, to be sent again; absent in a Cluster. */
  prevCommandQueue?: { shift(): { command: { reject(error: Error): void } } | undefined } | null
}

/**
 * Ends a connection that waits to reconnect. ioredis only closes its socket, which there is not: it
 * never emits `end`, its commands stay unanswered, and a consumer of BullMQ cannot be closed.
 * Remove it once ioredis is fixed (redis/ioredis#2169).
 */
function endReconnecting(connection: Reconnecting, disconnect: () => void): void {
  // The status of a connection that was never opened: ioredis then does itself what it does when a
  // socket closes.
  connection.status = 'wait'
  disconnect()
  while (true) {
    const sent = connection.prevCommandQueue?.shift()
    if (sent === undefined) return
    // The error of ioredis for commands of a connection that has ended: BullMQ knows it by its
    // message.
    sent.command.reject(new Error('Connection is closed.'))
  }
}

/** What a connection authenticates with. */
export type LoginOptions = {
  [name in 'username' | 'password' | 'tls' | 'sentinelUsername' | 'sentinelPassword' | 'sentinelTLS']?:
    | RedisOptions[name]
    | undefined
}

/**
 * Takes what the option `currentLogin` returns each time that a connection is opened: users,
 * passwords and certificates are rotated. A failure leaves the last ones.
 */
function renewLogin(redis: Redis): void {
  try {
    const currentLogin: unknown = Reflect.get(redis.options, 'currentLogin')
    if (typeof currentLogin === 'function') Object.assign(redis.options, currentLogin())
  } catch (error) {
    redis.emit('error', error)
  }
}

/** A connection of ours to one server. */
export class OwnRedis extends Redis {
  override connect(callback?: Parameters<Redis['connect']>[0]): Promise<void> {
    renewLogin(this)
    return super.connect(callback)
  }

  override disconnect(reconnect = false): void {
    if (reconnect || this.status !== 'reconnecting') super.disconnect(reconnect)
    else endReconnecting(this, () => super.disconnect())
  }

  override duplicate<Override extends Partial<RedisOptions> | undefined = undefined>(override?: Override) {
    renewLogin(this)
    return own(super.duplicate(override))
  }

  override sendCommand(...[command, stream]: Sent): unknown {
    Object.assign(command, { setTimeout: setCommandTimeout })
    return writesOf(this).send(() => super.sendCommand(command, stream))
  }

  /**
   * Names a missing right in one sentence with {@link ACL_RULE}. Redis's own names the command only
   * in some versions, and makes ioredis print a link to its wiki and continue.
   */
  override handleReconnection(error: Error, item: Item): void {
    const sentence = sentenceOf(error.message, item.command.name)
    if (sentence !== undefined) {
      error.message = sentence
      this.emit(MISSING_RIGHT, error)
    }
    super.handleReconnection(error, item)
  }
}
// Private in the types of ioredis.
Object.defineProperty(OwnRedis.prototype, 'setSocketTimeout', { value: setSocketTimeout })

/** A connection of ours to a Redis Cluster. */
export class OwnCluster extends Cluster {
  /**
   * Also ends the nodes that redirected commands add meanwhile. ioredis connects again once the
   * last node has ended, and ends those alone that it has now. Remove it once ioredis is fixed.
   */
  override disconnect(reconnect = false): void {
    const end = (node: Redis): void => {
      if (this.status === 'disconnecting') node.disconnect()
    }
    this.on('+node', end).once('connecting', () => this.off('+node', end))
    if (reconnect || this.status !== 'reconnecting') super.disconnect(reconnect)
    else endReconnecting(this, () => super.disconnect())
  }

  override duplicate(...changes: Parameters<Cluster['duplicate']>) {
    return own(super.duplicate(...changes))
  }

  override sendCommand(...sent: Parameters<Cluster['sendCommand']>): unknown {
    // The connection of a Cluster that subscribes is not one of its nodes.
    if (sent[0].name === 'subscribe') own(Reflect.get(this, 'subscriber')?.getInstance?.())
    return super.sendCommand(...sent)
  }
}

/** Makes an unopened connection ours: ioredis makes duplicates and nodes of its own classes. */
export function own<T>(connection: T): T {
  if (connection instanceof Redis) Object.setPrototypeOf(connection, OwnRedis.prototype)
  if (connection instanceof Cluster) Object.setPrototypeOf(connection.on('+node', own), OwnCluster.prototype)
  return connection
}

interface Timed {
  isSettled: boolean
  reject(error: Error): void
  _commandTimeoutTimer?: NodeJS.Timeout
}

// What has come is read before a command, or its connection, fails for want of an answer. After a
// process stood still, its timers are due before its sockets are read.

function setCommandTimeout(this: Timed, ms: number): void {
  const timeOut = () => {
    if (!this.isSettled) this.reject(new Error('Command timed out'))
  }
  this._commandTimeoutTimer ??= setTimeout(() => setImmediate(timeOut), ms)
}

interface Listening {
  stream: { once(event: 'data', callback: () => void): void; destroy(error: Error): void }
  options: { socketTimeout: number }
  commandQueue: { length: number }
  socketTimeoutTimer: NodeJS.Timeout | undefined
  setSocketTimeout(): void
}

function setSocketTimeout(this: Listening): void {
  const { stream } = this
  const { socketTimeout } = this.options
  let hasRead = false
  const timeOut = () => {
    if (hasRead) return
    this.socketTimeoutTimer = undefined
    stream.destroy(new Error(`Redis sent nothing for ${socketTimeout} ms.`))
  }
  this.socketTimeoutTimer = setTimeout(() => setImmediate(timeOut), socketTimeout)
  stream.once('data', () => {
    hasRead = true
    clearTimeout(this.socketTimeoutTimer)
    this.socketTimeoutTimer = undefined
    if (this.commandQueue.length > 0) this.setSocketTimeout()
  })
}

interface Handler {
  redis: Redis
  /** Rejects what waits for an answer, and connects again. */
  returnFatalError(error: unknown): void
}

/** Of connections that end: what else came with the bytes that ended them is not read. */
const ending = new WeakSet<Handler>()

/**
 * Unrequested bytes from Redis end a connection of ours instead of the process: ioredis throws for
 * some of them in a tick of its own. It makes the handler itself, so the hook is on the prototype;
 * other connections keep its method. Remove it once ioredis is fixed.
 */
const dispatch: unknown = Reflect.get(handler.default.prototype, 'dispatch')
Object.defineProperty(handler.default.prototype, 'dispatch', {
  value(this: Handler, take: () => void): void {
    if (!(this.redis instanceof OwnRedis)) {
      if (typeof dispatch === 'function') Reflect.apply(dispatch, this, [take])
      return
    }
    if (ending.has(this)) return
    try {
      take()
    } catch (error) {
      ending.add(this)
      this.returnFatalError(error)
    }
  },
})

/**
 * What the user of gateways, workers and applications may do (`ACL SETUSER`), with the QUEUE_PREFIX
 * where that is another. BullMQ and ioredis need `info`, which belongs to the dangerous commands.
 */
export const ACL_RULE = '~{spillway}* &{spillway}* +@all -@admin -@dangerous +info'

/** What Redis is asked without relying on it; see eviction.ts. */
const OPTIONAL = ['config']

/** An event of a connection, with the error. */
export const MISSING_RIGHT = 'missing right'

function sentenceOf(message: string, sent: string): string | undefined {
  if (!/^NOPERM |ACL failure in script/.test(message) || OPTIONAL.includes(sent)) return undefined
  const command = /'([\w|-]+)' command/.exec(message)?.[1] ?? sent
  const does = /channel/.test(message) ? 'use the channel of' : /key/.test(message) ? 'use a key of' : 'run'
  return `The user of Redis may not ${does} "${command.toLowerCase()}": give it the rule ${ACL_RULE}, with the QUEUE_PREFIX in place of {spillway}`
}

/** How long commands gather behind an unanswered one, as a blocking read. */
const PATIENCE_MS = 2

/**
 * Batches the writes of a connection: corks it whenever a command is sent, so that the commands of
 * one turn of the event loop reach Redis in one system call; those that come while earlier ones are
 * on their way gather until these are answered. The turn ends after all pending reads
 * (setImmediate), not after each (process.nextTick). On one core, the turns alone give a median of
 * 80 logins a second instead of 64 (`pnpm load login-100`, argon2id).
 */
class Writes {
  readonly #redis: Pick<Redis, 'stream'>
  #corked: Redis['stream'] | undefined
  #last: Promise<unknown> | undefined
  /** Until the commands that were written last are answered. */
  #awaited: Promise<unknown> | undefined

  constructor(redis: Pick<Redis, 'stream'>) {
    this.#redis = redis
  }

  send(command: () => unknown): unknown {
    const { stream } = this.#redis
    // Before the first connection there is no stream; ioredis then queues or rejects the command.
    if (this.#corked === undefined && stream !== undefined) {
      this.#corked = stream
      stream.cork()
      if (this.#awaited === undefined) setImmediate(() => this.#uncork())
      else this.#uncorkWhenAnswered(this.#awaited)
    }
    const answer = command()
    if (answer instanceof Promise) this.#last = answer
    return answer
  }

  #uncork(): void {
    this.#corked?.uncork()
    this.#corked = undefined
    const sent = this.#last
    const answered = () => {
      if (this.#awaited === sent) this.#awaited = undefined
    }
    this.#awaited = sent
    sent?.then(answered, answered)
  }

  #uncorkWhenAnswered(answer: Promise<unknown>): void {
    const timer = setTimeout(() => this.#uncork(), PATIENCE_MS)
    const atEndOfTurn = () => {
      clearTimeout(timer)
      setImmediate(() => this.#uncork())
    }
    answer.then(atEndOfTurn, atEndOfTurn)
  }
}

/** Beside the connections: ioredis sends commands while it constructs one. */
const allWrites = new WeakMap<object, Writes>()

function writesOf(redis: Pick<Redis, 'stream'>): Writes {
  const known = allWrites.get(redis)
  if (known !== undefined) return known
  const writes = new Writes(redis)
  allWrites.set(redis, writes)
  return writes
}

/**
 * From now on neither sockets nor the pauses before reconnecting keep the process alive: what waits
 * for an answer does that by its own timer. While it connects, it does.
 */
export function unrefRedis(connection: Redis | Cluster): void {
  connection.on('reconnecting', () => unrefPause(connection))
  if (connection instanceof Cluster) connection.on('+node', unrefRedis)
  else connection.on('connect', () => connection.stream.unref())
}

/** Without the timer's name, a process ends once Redis is back or the connection closed. */
function unrefPause(connection: Redis | Cluster): void {
  const timer: unknown = Reflect.get(connection, 'reconnectTimeout')
  if (timer instanceof Object && 'unref' in timer && typeof timer.unref === 'function') timer.unref()
}
