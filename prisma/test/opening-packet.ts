// The first packet of a client: PgBouncer refuses a connection for a single setting that it does
// not know.
import { once } from 'node:events'
import { createServer } from 'node:net'

/** The settings in the packet that opens the first connection to this URL, by name. It is then hung up on. */
export async function openingSettings(connect: (url: string) => Promise<unknown>): Promise<Map<string, string>> {
  const settings = new Map<string, string>()
  const server = createServer((socket) => {
    socket.once('data', (packet) => {
      // Its length and the version of the protocol come first; a zero ends each name, each value,
      // and the whole.
      const words = packet.toString('utf8', 8).split('\0')
      for (let at = 0; words[at]; at += 2) settings.set(words[at] ?? '', words[at + 1] ?? '')
      socket.destroy()
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server is bound to no port')
  await connect(`postgresql://user:password@127.0.0.1:${address.port}/database`).catch(() => {})
  server.close()
  return settings
}
