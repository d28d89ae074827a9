// Programs of this system that soon end by themselves, run without a keeper.
import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { ToolFailure } from './keeper.ts'

/** Rendered charts and schemas are larger than Node's own limit of 1 MiB. */
const OUTPUT_LIMIT_BYTES = 256 * 1_024 * 1_024

export interface RunOptions {
  cwd?: string
  env?: NodeJS.ProcessEnv
  input?: string
}

/** Returns its standard output. Rejects with a ToolFailure if it fails. */
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

/** The first of these programs that the PATH, or the folders given instead, has. */
export function onPath(names: string[], folders = (process.env.PATH ?? '').split(delimiter)): string | undefined {
  const isProgram = (file: string): boolean => {
    try {
      accessSync(file, constants.X_OK)
      return true
    } catch {
      return false
    }
  }
  return names.flatMap((name) => folders.filter(Boolean).map((folder) => join(folder, name))).find(isProgram)
}
