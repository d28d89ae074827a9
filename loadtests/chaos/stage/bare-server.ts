// A server that does nothing, to be asked like the others: what it takes to answer is the doing of the machine.
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { type Keeper, stopOrder } from '@spillway/local/processes/keeper'
import { moveTo } from '../../measure/cores.ts'

const PROGRAM = `const server = require('node:http').createServer((_, answer) => answer.end('{}'))
server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port))`

export interface BareServer {
  url: string
  close(): void
}

/** @param cores where it runs; anywhere without them */
export async function startBareServer(keeper: Keeper, cores?: readonly number[]): Promise<BareServer> {
  const child = keeper.spawn({ command: process.execPath, args: ['-e', PROGRAM], stopOrder: stopOrder.tool })
  if (child.stdout === null || child.pid === undefined) throw new Error('the bare server could not be started')
  const [url] = await once(createInterface(child.stdout), 'line')
  if (cores !== undefined) moveTo(child.pid, cores)
  return { url: String(url), close: () => child.kill() }
}
