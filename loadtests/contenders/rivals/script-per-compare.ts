// A process for each hash: this program with an argument, and the password on standard input. A
// script loads the hashes alone, because it pays for its start each time.
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { byTasks, perform } from '../hashing.ts'

const program = fileURLToPath(import.meta.url)

if (process.argv[2] === 'compare')
  process.stdout.write(JSON.stringify(await perform(JSON.parse(await text(process.stdin)))))
else {
  const { announce, serve } = await import('../rival-server.ts')
  const hashing = byTasks(async (task) => {
    const child = spawn(process.execPath, [program, 'compare'], { stdio: ['pipe', 'pipe', 'inherit'] })
    child.stdin.end(JSON.stringify(task))
    return JSON.parse(await text(child.stdout))
  })
  announce(await serve(hashing))
}
