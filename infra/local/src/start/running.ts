// Where the running `pnpm start` is, for commands that work on it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from '../processes/user-error.ts'
import { isHeld } from './lock.ts'

export interface RunningUrls {
  databaseUrl: string
  gatewayUrl: string
}

/** @param otherwise the end of the sentence for a UserError where nothing runs: what to set instead */
export function findRunning(stateDir: string, otherwise: string): RunningUrls {
  if (!isHeld(join(stateDir, 'start.lock')))
    throw new UserError(`Nothing runs here: run "pnpm start" first, or ${otherwise}.`)
  try {
    const { databaseUrl, gatewayUrl } = JSON.parse(readFileSync(join(stateDir, 'running.json'), 'utf8'))
    return { databaseUrl: String(databaseUrl), gatewayUrl: String(gatewayUrl) }
  } catch (cause) {
    throw new UserError('"pnpm start" is not ready yet: wait until it has printed where things listen.', { cause })
  }
}
