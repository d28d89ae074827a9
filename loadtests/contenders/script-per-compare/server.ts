// A process for each hash. The password travels on standard input, since arguments are visible to the whole machine.
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { HashingTask } from '../hashing.ts'
import { announce, serve } from '../rival-server.ts'

const script = fileURLToPath(new URL('./compare.js', import.meta.url))

async function run(task: HashingTask): Promise<unknown> {
  const child = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(JSON.stringify(task))
  return JSON.parse(await text(child.stdout))
}

const url = await serve(
  {
    hash: async (password, algorithm) => String(await run({ kind: 'hash', password, algorithm })),
    verify: async (password, storedHash) => (await run({ kind: 'verify', password, storedHash })) === true,
  },
  process.env,
)
announce(url)
