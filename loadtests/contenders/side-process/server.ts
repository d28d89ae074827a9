// One process beside the server does all hashing for as long as the server lives; they talk over Node's IPC channel.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { byTasks } from '../hashing.ts'
import { announce, serve } from '../rival-server.ts'

const child = fork(fileURLToPath(new URL('./worker.js', import.meta.url)))
const waiting = new Map<number, (answer: unknown) => void>()
let lastId = 0

child.on('message', ({ id, answer }: { id: number; answer: unknown }) => {
  waiting.get(id)?.(answer)
  waiting.delete(id)
})

const hashing = byTasks((task) => {
  const id = ++lastId
  return new Promise((resolve) => {
    waiting.set(id, resolve)
    child.send({ id, task })
  })
})

const url = await serve(hashing, process.env)
announce(url, child.pid === undefined ? [] : [{ role: 'hasher', pid: child.pid }])
