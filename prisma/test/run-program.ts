// One of this package's programs as users run it: compiled, from a directory of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

export interface Finished {
  code: number | null
  stdout: string
  stderr: string
}

/** A run, and how long the process went on after its last word, in milliseconds. */
export interface Run extends Finished {
  lingeredMs: number
}

/** Runs `dist/<name>.js` to its end, with these variables and none of the caller's that it reads. */
export async function runProgram(name: string, args: string[], variables: NodeJS.ProcessEnv): Promise<Run> {
  const program = fileURLToPath(new URL(`../dist/${name}.js`, import.meta.url))
  const { DATABASE_URL: _, ...env } = process.env
  const child = spawn(process.execPath, [program, ...args], {
    cwd: tmpdir(),
    env: { ...env, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let spokeAt = performance.now()
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', () => {
      spokeAt = performance.now()
    })
  }
  const [[code], stdout, stderr] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)])
  return { code, stdout, stderr, lingeredMs: performance.now() - spokeAt }
}
