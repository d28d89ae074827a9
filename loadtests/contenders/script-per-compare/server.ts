// A process for each hash. The password travels on standard input, since arguments are visible to the whole machine.
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { byTasks } from '../hashing.ts'
import { announce, serve } from '../rival-server.ts'

const script = fileURLToPath(new URL('./compare.js', import.meta.url))

const hashing = byTasks(async (task) => {
  const child = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(JSON.stringify(task))
  return JSON.parse(await text(child.stdout))
})

announce(await serve(hashing, process.env))
