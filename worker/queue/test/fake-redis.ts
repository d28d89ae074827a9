// A server in the place of Redis, which answers each command as a test says.
import { createServer, type Socket } from 'node:net'
import { listening } from '@spillway/infra/processes/port'
import type { Ending } from '@spillway/infra/rig/namespace'

export async function startFakeRedis(t: Ending, answerOf: (command: string) => string) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      for (const command of data.toString().split(/(?=\*\d+\r\n\$)/)) socket.write(answerOf(command))
    })
  })
  t.onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `redis://127.0.0.1:${await listening(server)}`, sockets }
}
