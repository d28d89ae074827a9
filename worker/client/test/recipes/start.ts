// Starts a recipe and talks to it as a browser would.

import { type ProcessOptions, startProcess } from '@spillway/infra/processes/node-process'
import { freePort } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { createApiClient } from '@spillway/infra/rig/api-client'
import type { Recipe } from './install.ts'

/** Before the change, logins wait for as long as it takes. */
const TIMEOUT_MS = 60_000

export interface StartOptions extends Pick<ProcessOptions, 'env'> {
  /** Of the version: see install.ts. */
  folder: string
}

export interface User {
  email: string
  password: string
}

export type StartedRecipe = Awaited<ReturnType<typeof startRecipe>>

/** Resolves when it answers. It is killed by close(). */
export async function startRecipe({ start, paths }: Recipe, { folder, env }: StartOptions) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const settings = { NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1', PORT: String(port) }
  const ofBetterAuth = { BETTER_AUTH_URL: url, BETTER_AUTH_SECRET: 'only for recipes, on the loopback interface' }
  const [entry, ...args] = start
  const started = startProcess({
    entry,
    args,
    cwd: folder,
    env: { ...settings, ...ofBetterAuth, ...env },
  })
  const client = createApiClient(url, { timeoutMs: TIMEOUT_MS })
  const close = async () => {
    client.close()
    await started.close()
  }
  try {
    // No recipe has a page at its root.
    const answers = async () => (await client.get('/')).status === 404
    await until(() => started.exit !== undefined || answers(), { what: `an answer of ${entry} in ${folder}` })
    if (started.exit !== undefined) throw new Error(`${entry} ended in ${folder}:\n${started.output()}`)
  } catch (error) {
    await close()
    throw error
  }
  return {
    pid: started.pid,
    url,
    output: started.output,
    /** These resolve with the status of the answer, 0 without one. */
    register: async (user: User) => (await client.post(paths.register, { name: 'Ada', ...user })).status,
    login: async (user: User) => (await client.post(paths.login, user)).status,
    close,
  }
}
