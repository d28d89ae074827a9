/** Hooks into private parts of Node 20 to 24; CONTRIBUTING has their reasons and tests. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Server, type Socket } from 'node:net'

/** Whether servers listen at paths, listed as other pipes are. False where Node lacks the list. */
export function hasServersAtPaths(): boolean {
  const handles: unknown = Reflect.get(process, '_getActiveHandles')?.call(process)
  return Array.isArray(handles) && handles.some((handle) => handle instanceof Server)
}

/**
 * Node duplicates the handle of a listening socket only by sending it to another process: this
 * helper sends it back as often as requested, and exits. The override of `listen` keeps the helper
 * from accepting connections, which would be lost with it.
 */
const HELPER = `
const { Server } = require('node:net')
Server.prototype.listen = function (handle, isListening) { this._handle = handle; isListening() }
process.once('disconnect', () => process.exit())
process.once('message', (count, server) => {
  let left = count
  for (let n = 0; n < count; n++) process.send('', server._handle, { keepOpen: true }, () => --left || process.exit())
})`

interface HandleOptions {
  count: number
  /** Kills the helper. */
  signal: AbortSignal
  /** Takes each handle as it arrives: `listen` accepts connections with it. */
  take(listen: (options: ListenOptions) => Server): void
}

interface ListenOptions {
  /** The accept backlog: a further listen() without it would set Node's 511. */
  backlog: number
  accept(socket: Socket): void
  onError(error: Error): void
}

/**
 * Duplicates the handle of a listening server. Servers of these handles accept connections as
 * Node's HTTP server does. Resolves when the helper has exited.
 *
 * @throws when the helper could not be started or exited too early; handles that were taken before
 * then stay usable
 */
export async function duplicateHandles(server: Server, { count, signal, take }: HandleOptions): Promise<void> {
  // The environment is empty because the gateway's holds keys. The helper exits when its channel
  // closes, at the latest with this process.
  const helper = spawn(process.execPath, ['-e', HELPER], {
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    signal,
    killSignal: 'SIGKILL',
  })
  let failure: Error | undefined
  let taken = 0
  helper.on('message', (_message, handle) => {
    taken++
    take(({ backlog, accept, onError }) => {
      const other = new Server({ allowHalfOpen: true, noDelay: true }, accept)
      other.on('error', onError)
      return other.listen(handle, backlog)
    })
  })
  await new Promise<void>((resolve) => {
    helper.on('close', () => resolve())
    helper.on('error', (error) => {
      failure ??= error
      if (helper.pid === undefined) resolve()
    })
    helper.send(count, server)
  })
  if (!signal.aborted && taken < count) throw new Error(`${taken} of ${count} handles came back`, { cause: failure })
}

/** Stops accepting connections; resolves when the last connection has ended. */
export function closed(server: Server): Promise<unknown> {
  return once(server.close(), 'close')
}
