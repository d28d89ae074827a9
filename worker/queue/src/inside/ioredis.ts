/** Hooks into private parts of ioredis 6.0, for all connections. CONTRIBUTING lists each with its reason and the test that notices an upgrade. */
import { Cluster, Command, Redis } from 'ioredis'
import handler from 'ioredis/built/DataHandler.js'

interface Connection {
  status: string
  /** The commands in flight when the connection broke, which are to be sent again; absent in a Cluster. */
  prevCommandQueue?: { shift(): { command: { reject(error: Error): void } } | undefined } | null
}

type Disconnect = (this: Connection, reconnect?: boolean) => void

function endingWhileReconnecting(disconnect: Disconnect): Disconnect {
  return function (reconnect = false) {
    if (reconnect || this.status !== 'reconnecting') return disconnect.call(this, reconnect)
    // The status of a connection that was never opened: ioredis then does itself what it does when a socket closes.
    this.status = 'wait'
    disconnect.call(this)
    while (true) {
      const sent = this.prevCommandQueue?.shift()
      if (sent === undefined) return
      // The error of ioredis for commands of a connection that has ended: BullMQ knows it by its message.
      sent.command.reject(new Error('Connection is closed.'))
    }
  }
}

/**
 * Makes disconnect() end a connection that waits to reconnect. ioredis only closes its socket, and a waiting connection has no socket. It
 * never emits `end`, and its commands stay unanswered, so a consumer of BullMQ cannot be closed. Remove it once ioredis is fixed
 * (redis/ioredis#2169). Once for the process: BullMQ opens further connections of the same class.
 */
export function endConnectionsThatReconnect(): void {
  for (const { prototype } of [Redis, Cluster]) {
    Object.defineProperty(prototype, 'disconnect', { value: endingWhileReconnecting(prototype.disconnect) })
  }
}

/**
 * Makes a Cluster that disconnects end the nodes that are added to it meanwhile, as commands in flight add them when they are redirected.
 * ioredis connects again once the last node has ended, and tells only those to end that it has at the beginning. Remove it once ioredis is
 * fixed. Once for the process: BullMQ opens further connections of the same class.
 */
export function endNodesAddedLate(): void {
  const { disconnect } = Cluster.prototype
  Cluster.prototype.disconnect = function (reconnect) {
    const end = (node: Redis): void => {
      if (this.status === 'disconnecting') node.disconnect()
    }
    this.on('+node', end).once('connecting', () => this.off('+node', end))
    disconnect.call(this, reconnect)
  }
}

interface Timed {
  isSettled: boolean
  reject(error: Error): void
  _commandTimeoutTimer?: NodeJS.Timeout
}

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

/**
 * Reads what has come before a command fails, or its connection ends, because no answer came. Where a process stood still, as on a busy or
 * sleeping machine, its timers are due before its sockets are read, and ioredis fails commands that Redis has answered. Once for the process.
 */
export function readBeforeTimingOut(): void {
  Object.defineProperty(Command.prototype, 'setTimeout', { value: setCommandTimeout })
  Object.defineProperty(Redis.prototype, 'setSocketTimeout', { value: setSocketTimeout })
}

interface Handler {
  /** Rejects what waits for an answer, and connects again. */
  returnFatalError(error: unknown): void
}

/** Of connections that end: what else came with the bytes that ended them is not read. */
const ending = new WeakSet<Handler>()

function dispatch(this: Handler, take: () => void): void {
  if (ending.has(this)) return
  try {
    take()
  } catch (error) {
    ending.add(this)
    this.returnFatalError(error)
  }
}

/**
 * Makes unrequested bytes from Redis end the connection instead of the process. ioredis throws for some of them in a tick of its own, where
 * the error cannot be caught. Remove it once ioredis is fixed. Once for the process.
 */
export function endConnectionsByMalformedReplies(): void {
  Object.defineProperty(handler.default.prototype, 'dispatch', { value: dispatch })
}

/**
 * What the user of gateways, workers and applications may do (`ACL SETUSER`), with the QUEUE_PREFIX where that is another. BullMQ and ioredis
 * need `info`, which belongs to the dangerous commands.
 */
export const ACL_RULE = '~{spillway}* &{spillway}* +@all -@admin -@dangerous +info'

/** What Redis is asked without relying on it; see eviction.ts. */
const OPTIONAL = ['config']

/** An event of a connection, with the error. */
export const MISSING_RIGHT = 'missing right'

/**
 * Every error that Redis answers without a right says so in one sentence, with the command and {@link ACL_RULE}. Redis's own message names
 * the command only in some versions, and makes ioredis print a link to its wiki and continue. Once for the process.
 */
export function explainMissingRights(): void {
  const { handleReconnection } = Redis.prototype
  Redis.prototype.handleReconnection = function (error, item) {
    const sentence = sentenceOf(error.message, item.command.name)
    if (sentence !== undefined) {
      error.message = sentence
      this.emit(MISSING_RIGHT, error)
    }
    handleReconnection.call(this, error, item)
  }
}

function sentenceOf(message: string, sent: string): string | undefined {
  if (!/^NOPERM |ACL failure in script/.test(message) || OPTIONAL.includes(sent)) return undefined
  const command = /'([\w|-]+)' command/.exec(message)?.[1] ?? sent
  const does = /channel/.test(message) ? 'use the channel of' : /key/.test(message) ? 'use a key of' : 'run'
  return `The user of Redis may not ${does} "${command.toLowerCase()}": give it the rule ${ACL_RULE}, with the QUEUE_PREFIX in place of {spillway}`
}

/** How long commands gather behind one that is not answered, such as a read that blocks. A round trip takes less. */
const PATIENCE_MS = 2

/**
 * Batches writes: corks the connection whenever a command is sent, so that commands that wait together reach Redis in one system call. All
 * commands of one turn of the event loop do; commands that come while earlier ones are on their way gather until these are answered. A
 * verdict and the completion of its job are then read, run and answered together, and jobs that many requests add arrive together. The turn
 * ends after all pending reads (setImmediate), not after each of them (process.nextTick). Measured with gateway and worker on one core,
 * argon2id, four times in turn (`pnpm load login-100`): a median of 80 logins a second instead of 64, by the turns alone.
 */
export function batchWrites(redis: Redis): void {
  const { sendCommand } = redis
  let corked: typeof redis.stream | undefined
  let last: Promise<unknown> | undefined
  /** Until the commands that were written last are answered. */
  let awaited: Promise<unknown> | undefined

  function uncork(): void {
    corked?.uncork()
    corked = undefined
    const sent = last
    const answered = () => {
      if (awaited === sent) awaited = undefined
    }
    awaited = sent
    sent?.then(answered, answered)
  }

  function uncorkWhenAnswered(answer: Promise<unknown>): void {
    const timer = setTimeout(uncork, PATIENCE_MS)
    const atEndOfTurn = () => {
      clearTimeout(timer)
      setImmediate(uncork)
    }
    answer.then(atEndOfTurn, atEndOfTurn)
  }

  redis.sendCommand = (...sent) => {
    const { stream } = redis
    // Before the first connection there is no stream; ioredis then queues or rejects the command.
    if (corked === undefined && stream !== undefined) {
      corked = stream
      stream.cork()
      if (awaited === undefined) setImmediate(uncork)
      else uncorkWhenAnswered(awaited)
    }
    const answer = sendCommand.apply(redis, sent)
    if (answer instanceof Promise) last = answer
    return answer
  }
}

/**
 * Connections that do not keep the process alive: what waits for an answer does that by its own timer. From now on neither sockets nor the
 * pauses before reconnecting keep it alive. While it connects, it does.
 */
export function unrefRedis(connection: Redis | Cluster): void {
  connection.on('reconnecting', () => unrefPause(connection))
  if (connection instanceof Cluster) connection.on('+node', unrefRedis)
  else connection.on('connect', () => connection.stream.unref())
}

/** ioredis has no option for this. If a version renames the timer, the process ends only once Redis is back or the connection is closed. */
function unrefPause(connection: Redis | Cluster): void {
  const timer: unknown = Reflect.get(connection, 'reconnectTimeout')
  if (timer instanceof Object && 'unref' in timer && typeof timer.unref === 'function') timer.unref()
}
