// The keeper process: in a session of its own, it outlives its parent to stop the processes that the parent started. It reads the lines
// "watch <pid> <signal> <stopOrder>" and "forget <pid>", and acts when its standard input ends, whether the parent closed it, crashed
// or was killed.
import { constants } from 'node:os'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRunning } from './process-table.ts'

/** How long a process may take to end by its own signal before it is killed. */
const graceMs = Number(process.argv[2])
/** How long a process may take to end after SIGKILL. */
const killMs = 1_000
const pollMs = 20

const watched = new Map<number, { signal: NodeJS.Signals; stopOrder: number }>()

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, pid, signal, stopOrder] = line.split(' ')
  if (verb === 'watch' && isSignal(signal)) watched.set(Number(pid), { signal, stopOrder: Number(stopOrder) })
  else watched.delete(Number(pid))
}

const stopOrders = [...new Set([...watched.values()].map(({ stopOrder }) => stopOrder))].sort((a, b) => a - b)
for (const stopOrder of stopOrders) {
  const pids = [...watched].filter(([, entry]) => entry.stopOrder === stopOrder)
  await Promise.all(pids.map(([pid, { signal }]) => end(pid, signal)))
}
process.exit(0)

function isSignal(name: string | undefined): name is NodeJS.Signals {
  return name !== undefined && name in constants.signals
}

async function end(pid: number, signal: NodeJS.Signals): Promise<void> {
  send(pid, signal)
  if (await ended(pid, graceMs)) return
  send(pid, 'SIGKILL')
  await ended(pid, killMs)
}

async function ended(pid: number, withinMs: number): Promise<boolean> {
  for (const until = Date.now() + withinMs; Date.now() < until; await sleep(pollMs)) {
    if (!isRunning(pid)) return true
  }
  return false
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has ended already.
  }
}
