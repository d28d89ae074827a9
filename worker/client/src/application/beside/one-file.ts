/**
 * Programs in one file run themselves where they fork process.execPath: the application would start
 * once more, with a process beside of its own, and so on.
 */
import { basename } from 'node:path'

export const ONE_FILE =
  'a program in one file (Node SEA, bun build --compile, deno compile) cannot start the process that hashes: give it a queue (redis and sealKeys, SPILLWAY_REDIS_URL and SPILLWAY_SEAL_KEYS), or run it by node, bun or deno with @spillway/client installed'

/** What is used of other runtimes. */
interface Runtimes {
  Bun?: { main: string }
  Deno?: { build: { standalone?: boolean } }
}

/** Whether this process is such a program, as its runtime says. */
export function isOneFile(): boolean {
  const { Bun, Deno }: Runtimes = Object(globalThis)
  if (Bun !== undefined) return /^(\/\$bunfs\/|B:[\\/]~BUN[\\/])/.test(Bun.main)
  if (Deno !== undefined) return Deno.build.standalone === true
  return process.getBuiltinModule?.('node:sea')?.isSea() === true
}

/** Names the hashing program to the process that is to run it. */
export const PROGRAM_VARIABLE = 'SPILLWAY_HASHING_PROGRAM'
/** How a process ends that runs something else. */
export const NOT_THE_PROGRAM = 86

/**
 * Ends a process that was started to hash and runs an application: its runtime does not say that it
 * is one file. Called where an application loads this package.
 */
export function endUnlessApplication(): void {
  const { [PROGRAM_VARIABLE]: program } = process.env
  if (program !== undefined && basename(process.argv[1] ?? '') !== basename(program)) process.exit(NOT_THE_PROGRAM)
}
