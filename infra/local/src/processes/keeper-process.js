// The keeper process, in a session of its own: it outlives its parent to stop the processes that
// the parent started. It reads the lines "watch <pid> <signal> <stopOrder>" and "forget <pid>", and
// acts when its standard input ends: the parent closed it, crashed or was killed. Plain JavaScript,
// because every test file starts it: TypeScript would take ten times as long.
// @ts-check
import { existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** Longer than a worker's grace period, and than PostgreSQL's checkpoint at shutdown. */
const graceMs = 15_000
/** How long a process may take to end after SIGKILL. */
const killMs = 1_000
const pollMs = 20

const hasProc = existsSync('/proc/self/stat')

/** @type {Map<number, { signal: string, stopOrder: number }>} */
const watched = new Map()

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, pid, signal = 'SIGTERM', stopOrder] = line.split(' ')
  if (verb === 'watch') watched.set(Number(pid), { signal, stopOrder: Number(stopOrder) })
  else watched.delete(Number(pid))
}

const stopOrders = [...new Set([...watched.values()].map(({ stopOrder }) => stopOrder))].sort((a, b) => a - b)
for (const stopOrder of stopOrders) {
  const pids = [...watched].filter(([, entry]) => entry.stopOrder === stopOrder)
  await Promise.all(pids.map(([pid, { signal }]) => end(pid, signal)))
}
process.exit(0)

/** @param {number} pid @param {string} signal */
async function end(pid, signal) {
  send(pid, signal)
  if (await ended(pid, graceMs)) return
  send(pid, 'SIGKILL')
  await ended(pid, killMs)
}

/** @param {number} pid @param {number} withinMs */
async function ended(pid, withinMs) {
  for (const until = Date.now() + withinMs; Date.now() < until; await sleep(pollMs)) {
    if (!send(pid, 0) || isZombie(pid)) return true
  }
  return false
}

/** False where no process has this id. @param {number} pid @param {string | 0} signal 0 asks */
function send(pid, signal) {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

/** Ended, but not reaped: the first process of a container may never do so. @param {number} pid */
function isZombie(pid) {
  try {
    return hasProc && /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return true
  }
}
