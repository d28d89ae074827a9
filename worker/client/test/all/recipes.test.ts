// The recipes, installed from the registry with the packed package: users register and log in, nobody else does, and a process beside hashes.
// Those that are large to install are left to `pnpm --filter @spillway/client recipes`.
import assert from 'node:assert/strict'
import { cp } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApiClient } from '@spillway/infra/harness/api-client'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { startProcess } from '@spillway/infra/processes/node-process'
import { freePort } from '@spillway/infra/processes/port'
import { findPids, findProcess } from '@spillway/infra/processes/process-table'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { env, packed, run, skip } from '../installed.ts'

const own = { register: '/users', login: '/login' }
const ofBetterAuth = { register: '/api/auth/sign-up/email', login: '/api/auth/sign-in/email' }
const recipes = [
  { name: 'express', start: ['app.js'], isLight: true, paths: own },
  { name: 'fastify', start: ['app.js'], isLight: false, paths: own },
  { name: 'nestjs', start: ['dist/main.js'], isLight: true, paths: own },
  { name: 'nextjs', start: ['node_modules/next/dist/bin/next', 'start'], isLight: false, paths: own },
  { name: 'better-auth', start: ['server.js'], isLight: false, paths: ofBetterAuth },
]
const recipesDir = fileURLToPath(new URL('../../recipes', import.meta.url))
/** What running a recipe in its own folder leaves there. */
const LEFT = ['node_modules', 'dist', '.next', 'package-lock.json', 'users.json']
/** It is installed, and perhaps built. */
const timeout = 400_000

for (const { name, start, paths } of recipes.filter(
  ({ isLight }) => isLight || process.env.SPILLWAY_RECIPES === 'all',
)) {
  test.skipIf(skip)(`recipes/${name}: users register and log in, and nobody else`, { timeout }, async (t) => {
    const cwd = join(await scratchDir(t), name)
    await cp(join(recipesDir, name), cwd, { recursive: true, filter: (path) => !LEFT.includes(basename(path)) })
    await run('npm', ['install', '--include=dev', '--no-audit', '--no-fund', await packed()], { cwd, env })
    await run('npm', ['run', 'build', '--if-present'], { cwd, env })

    const port = String(await freePort())
    const url = `http://127.0.0.1:${port}`
    const [entry = '', ...args] = start
    const secrets = { BETTER_AUTH_URL: url, BETTER_AUTH_SECRET: 'only for recipes, on the loopback interface' }
    const variables = { ...env, NEXT_TELEMETRY_DISABLED: '1', PORT: port, SPILLWAY_WAIT_MS: '60000', ...secrets }
    const started = startProcess({ entry, args, cwd, env: variables })
    t.onTestFinished(() => void started.close())
    const client = createApiClient(url, { timeoutMs: 60_000 })
    t.onTestFinished(() => client.close())
    // No recipe has a page at its root.
    await until(async () => started.exit !== undefined || (await client.get('/')).status === 404)

    const post = async (path: string, body: object) => (await client.post(path, { name: 'Ada', ...body })).status
    const ada = { email: 'ada@example.com', password: 'correct horse' }
    assert.ok([200, 201].includes(await post(paths.register, ada)), started.output())
    assert.equal(await post(paths.login, ada), 200, started.output())
    assert.equal(await post(paths.login, { ...ada, password: 'wrong horse' }), 401)
    assert.equal(await post(paths.login, { ...ada, email: 'eve@example.com' }), 401)
    assert.ok((await post(paths.register, ada)) >= 400, 'an address is registered once')
    assert.ok(findPids('hashing-program').some((pid) => findProcess(pid)?.parentPid === started.pid))
  })
}
