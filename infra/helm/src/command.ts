// Programs that are run to their end.
import { execFile } from 'node:child_process'
import { basename } from 'node:path'
import { logTail } from '@spillway/local/processes/log-tail'
import { UserError } from '@spillway/local/processes/user-error'

/** Rendered charts and schemas are larger than Node's own limit of 1 MiB. */
const OUTPUT_LIMIT_BYTES = 256 * 1_024 * 1_024

export interface CommandOptions {
  cwd?: string
  env?: NodeJS.ProcessEnv
  /** Handed to its standard input. */
  input?: string
}

/** A program ended with something else than 0; the message ends with its last words. */
export class CommandFailure extends UserError {
  override name = 'CommandFailure'
  /** All it printed. */
  readonly output: string

  constructor(command: string, args: string[], output: string, cause: unknown) {
    super(`${[basename(command), ...args].join(' ').slice(0, 100)} failed: ${logTail(output)}`, { cause })
    this.output = output
  }
}

/** Runs a program to its end and gives what it printed to standard output. Rejects with a CommandFailure if it fails. */
export function run(command: string, args: string[], { input, ...options }: CommandOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { ...options, maxBuffer: OUTPUT_LIMIT_BYTES }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new CommandFailure(command, args, stdout + stderr || error.message, error))
    })
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}
