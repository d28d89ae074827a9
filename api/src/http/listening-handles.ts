/**
 * Further handles of the socket on which a server listens, each a file descriptor of its own. Node can only make them by sending
 * the socket to another process: a helper that sends it back as often as it is told, and ends.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Server, type Socket } from 'node:net'

/** Without the second line the helper would accept connections on what it is sent, and lose them when it ends. */
const HELPER = `
const { Server } = require('node:net')
Server.prototype.listen = function (handle, isListening) { this._handle = handle; isListening() }
process.once('disconnect', () => process.exit())
process.once('message', (count, server) => {
  let left = count
  for (let n = 0; n < count; n++) process.send('', server._handle, { keepOpen: true }, () => --left || process.exit())
})`

export interface HandleOptions {
  count: number
  /** Connections that the system holds until they are accepted: listening again without it would set Node's 511. */
  backlog: number
  /** Ends the helper. */
  signal: AbortSignal
  accept(socket: Socket): void
}

/**
 * Makes a server of each further handle, which accepts connections as Node's HTTP server does, and adds it to a list as soon as it is
 * there. Resolves when the helper has ended.
 *
 * @throws when the helper could not be started or ended too early; the handles that came before are good
 */
export async function addHandles(server: Server, servers: Server[], options: HandleOptions): Promise<void> {
  const { count, backlog, signal, accept } = options
  // Its environment is empty, because ours holds keys. It ends with the channel, and so with this process at the latest.
  const helper = spawn(process.execPath, ['-e', HELPER], {
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    signal,
    killSignal: 'SIGKILL',
  })
  let failure: Error | undefined
  let added = 0
  helper.on('message', (_message, handle) => {
    const other = new Server({ allowHalfOpen: true, noDelay: true }, accept)
    other.on('error', (error) => (failure ??= error))
    other.on('listening', () => added++)
    other.listen(handle, backlog)
    if (signal.aborted) other.close()
    else servers.push(other)
  })
  await new Promise<void>((resolve) => {
    helper.on('close', () => resolve())
    helper.on('error', (error) => {
      failure ??= error
      if (helper.pid === undefined) resolve()
    })
    helper.send(count, server)
  })
  if (!signal.aborted && added < count) throw new Error(`${added} of ${count} handles came back`, { cause: failure })
}

/** Stops accepting connections, and resolves when the last one has ended. */
export function closed(server: Server): Promise<unknown> {
  return once(server.close(), 'close')
}
