// Runs a program to its end, without a keeper: for programs that soon end by themselves.
import { execFile } from 'node:child_process'
import { ToolFailure } from './keeper.ts'

/** Rendered charts and schemas are larger than Node's own limit of 1 MiB. */
const OUTPUT_LIMIT_BYTES = 256 * 1_024 * 1_024

export interface RunOptions {
  cwd?: string
  env?: NodeJS.ProcessEnv
  /** Written to its standard input. */
  input?: string
}

/** Runs a program and returns its standard output. Rejects with a ToolFailure if it fails. */
export function run(command: string, args: string[], { input, ...options }: RunOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { ...options, maxBuffer: OUTPUT_LIMIT_BYTES }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new ToolFailure({ command, args }, stdout + stderr || error.message))
    })
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}
