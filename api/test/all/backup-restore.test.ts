// A drill: a backup of a running system, the loss of its processes, its database and its Redis, and
// the restore, with its keys and without them. What ends and what goes on is as the chart's README
// tells operators.
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keeper } from '@spillway/infra/processes/keeper'
import { run } from '@spillway/infra/processes/run'
import { createNamespace } from '@spillway/infra/rig/namespace'
import { openSpillway, type Spillway } from '@spillway/infra/rig/spillway'
import { databaseOf, query, withDatabase } from '@spillway/infra/services/query'
import { migrate } from '@spillway/infra/start/build'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { afterAll, test } from 'vitest'
import { assertProblem, Client, type Credentials, expect, respondAsync } from '../client.ts'
import { CHEAP_ARGON2 } from '../system.ts'

// Backups of a database: by pg_dump, as operators make them, where there is one for this server.
// The embedded PostgreSQL comes without: there all rows are copied in one snapshot, and restored
// into a database that is migrated anew.

/** Those that a row refers to come first. */
const tables = [
  ...['users', 'sessions', 'mail_tokens', 'used_tickets', 'audit_events', 'blocks', 'tombstone_key', 'tombstones'],
]

/** Writes the file while the system runs; the result restores it to a database of the same name */
async function backUp(databaseUrl: string, file: string): Promise<() => Promise<void>> {
  if (await fitsPgDump(databaseUrl)) {
    await run('pg_dump', ['--format=custom', `--file=${file}`, `--dbname=${databaseUrl}`])
    return async () => {
      await query(withDatabase(databaseUrl, 'postgres'), `CREATE DATABASE "${databaseOf(databaseUrl)}"`)
      await run('pg_restore', ['--no-owner', '--exit-on-error', `--dbname=${databaseUrl}`, file])
    }
  }
  await copyRows(databaseUrl, file)
  return () => restoreRows(databaseUrl, file)
}

/** pg_dump refuses a server that is newer than itself. */
async function fitsPgDump(databaseUrl: string): Promise<boolean> {
  const version = await run('pg_dump', ['--version']).catch(() => '')
  const [row] = await query(databaseUrl, 'SHOW server_version')
  return Number.parseInt(/\d+/.exec(version)?.[0] ?? '0', 10) >= Number.parseInt(String(row?.server_version), 10)
}

async function copyRows(databaseUrl: string, file: string): Promise<void> {
  const known = await query(databaseUrl, `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
  const names = known.map(({ tablename }) => tablename).sort()
  assert.deepEqual(names, ['_prisma_migrations', ...tables].sort(), 'a table is missing from the backup')
  // One statement sees one state of all tables.
  const lists = tables.map((table) => `'${table}', (SELECT coalesce(json_agg(t), '[]') FROM ${table} t)`)
  const [row] = await query(databaseUrl, `SELECT json_build_object(${lists.join(', ')})::text AS rows`)
  await writeFile(file, String(row?.rows))
}

async function restoreRows(databaseUrl: string, file: string): Promise<void> {
  const keeper = new Keeper()
  try {
    await migrate(keeper, databaseUrl)
  } finally {
    await keeper.close()
  }
  const rows: Record<string, object[]> = JSON.parse(await readFile(file, 'utf8'))
  for (const table of tables) {
    const insert = `INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1::json)`
    await query(databaseUrl, insert, [JSON.stringify(rows[table])])
  }
}

const readme = await readFile(new URL('../../../infra/helm/spillway/README.md', import.meta.url), 'utf8')
const dir = await mkdtemp(join(tmpdir(), 'spillway-backup-'))
const { databaseUrl, queuePrefix, close } = await createNamespace()
const maintenanceUrl = withDatabase(databaseUrl, 'postgres')
const closers: (() => Promise<unknown>)[] = [close, () => rm(dir, { recursive: true })]
afterAll(async () => {
  for (const end of closers.toReversed()) await end()
})

/** A failure closes an account to unknown devices, which shows them. Tickets outlast the drill. */
const gatewayEnv = { GUESSES_PER_ACCOUNT: '1', TICKET_TTL_MS: '3600000', ACCESS_TOKEN_TTL_S: '3600' }

/** A gateway, a worker and an empty Redis, with these keys where they are given. */
async function started(keys: NodeJS.ProcessEnv = {}): Promise<{ spillway: Spillway; api: Client }> {
  const redis = await startOwnRedis()
  closers.push(() => redis.close())
  const env = { ...CHEAP_ARGON2, ...keys }
  const workerEnv = { WORKER_CONCURRENCY: '1' }
  const spillway = openSpillway({ databaseUrl, redisUrl: redis.url, queuePrefix, env, gatewayEnv, workerEnv })
  closers.push(async () => assert.deepEqual(await spillway.close(), []))
  const [{ url }] = await Promise.all([spillway.gateway(), spillway.worker()])
  await spillway.knowsWorkers()
  return { spillway, api: new Client(url) }
}

/** Loses all that runs, with its Redis and the database. */
async function lose({ gateways, workers }: Spillway): Promise<void> {
  const members = [...gateways, ...workers]
  for (const member of members) member.signal('SIGKILL')
  await Promise.all(members.map(({ exited }) => exited))
  await query(maintenanceUrl, `DROP DATABASE "${databaseOf(databaseUrl)}" WITH (FORCE)`)
}

const known = (deviceToken: string) => ({ headers: { 'spillway-device': deviceToken } })

/** Fails once, so that only devices that are known get in. */
async function closeToStrangers(api: Client, account: Credentials): Promise<void> {
  expect(401, await api.login({ ...account, password: 'another one' }))
  assertProblem(await api.login(account), 429, 'challenge_required')
}

const { spillway: lost, api: before } = await started()
const { account, ...session } = await before.signedIn()
const moving = expect(200, await before.login(account))
const ending = expect(200, await before.login(account))
const { ticket } = expect(202, await before.login(await before.newAccount(), respondAsync))
const restore = await backUp(databaseUrl, join(dir, 'spillway.dump'))
const late = await before.newAccount()
const moved = expect(200, await before.refresh(moving.refreshToken))
expect(204, await before.logout(ending.refreshToken))
await lose(lost)
await restore()
const { SPILLWAY_SEAL_KEYS, SPILLWAY_JWT_KEYS } = lost.environment
const { spillway, api } = await started({ SPILLWAY_SEAL_KEYS, SPILLWAY_JWT_KEYS })

test('with the same keys accounts, sessions, access tokens and known devices are good, and tickets tell that their jobs are lost', async () => {
  expect(200, await api.login(account))
  assert.equal(expect(200, await api.me(session.accessToken)).email, account.email)
  const refreshed = expect(200, await api.refresh(session.refreshToken))
  expect(200, await api.me(refreshed.accessToken))
  assertProblem(await api.redeem(ticket, respondAsync), 410, 'ticket_lost')
  await closeToStrangers(api, account)
  expect(200, await api.login(account, known(session.deviceToken)))
})

test('what happened after the backup is undone, and one statement ends all sessions that came back', async () => {
  expect(401, await api.login(late))
  assertProblem(await api.refresh(moved.refreshToken), 401, 'invalid_refresh_token')
  expect(200, await api.me(ending.accessToken))
  const [statement = ''] = /^UPDATE sessions SET .*;$/m.exec(readme) ?? []
  await query(databaseUrl, statement)
  assertProblem(await api.me(ending.accessToken), 401, 'invalid_token')
  assertProblem(await api.refresh(ending.refreshToken), 401, 'invalid_refresh_token')
})

test('without the keys accounts are good; sessions, tickets and known devices are not', async () => {
  await lose(spillway)
  await restore()
  const { api: anew } = await started()
  expect(200, await anew.login(account))
  assertProblem(await anew.refresh(session.refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await anew.me(session.accessToken), 401, 'invalid_token')
  assertProblem(await anew.redeem(ticket, respondAsync), 400, 'invalid_ticket')
  await closeToStrangers(anew, account)
  assertProblem(await anew.login(account, known(session.deviceToken)), 429, 'challenge_required')
})
