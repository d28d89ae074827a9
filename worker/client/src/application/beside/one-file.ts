/**
 * A program in one file runs itself when it forks process.execPath: the application would start
 * once more, with its own process beside, and so on.
 */
import { basename } from 'node:path'

export const ONE_FILE =
  'a program in one file (Node SEA, bun build --compile, deno compile) cannot start the process that hashes: give it a queue (redis and sealKeys, SPILLWAY_REDIS_URL and SPILLWAY_SEAL_KEYS), or run it by node, bun or deno with @spillway/client installed'

/** Names the hashing program to the process that is to run it. */
export const PROGRAM_VARIABLE = 'SPILLWAY_HASHING_PROGRAM'
/** The exit code of a process that runs another program. */
export const NOT_THE_PROGRAM = 86

/**
 * Ends a process that was started to hash but runs an application: its runtime does not report that
 * it is one file. Called when an application loads this package.
 */
export function endUnlessApplication(): void {
  const { [PROGRAM_VARIABLE]: program } = process.env
  if (program !== undefined && basename(process.argv[1] ?? '') !== basename(program)) process.exit(NOT_THE_PROGRAM)
}
