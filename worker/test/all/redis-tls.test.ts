// Redis and Sentinels that speak TLS alone and ask for passwords, the servers' and their own: real
// ones, with certificates of an authority made for the test.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { canIssue, createAuthority, issue } from '@spillway/infra/harness/certificates'
import { Keeper, stopOrder } from '@spillway/infra/processes/keeper'
import { freePort } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { findRedis } from '@spillway/infra/services/redis'
import { connectRedis } from '@spillway/queue/redis/connect'
import { afterAll, beforeAll, describe, test } from 'vitest'

const run = promisify(execFile)
const dir = mkdtempSync(join(tmpdir(), 'spillway-tls-'))
const keeper = new Keeper()
afterAll(async () => {
  await keeper.close()
  rmSync(dir, { recursive: true, force: true })
})
/** Parameters of a URL. */
const clientFiles = `cert=${join(dir, 'numbered.crt')}&key=${join(dir, 'numbered.key')}`
const program = await findRedis({ keeper, dir, say: () => undefined })

describe.skipIf(!canIssue() && 'needs OpenSSL 3')('over TLS', () => {
  let master = 0
  let sentinel = 0

  beforeAll(async () => {
    const authority = await createAuthority(dir, 'ca')
    await issue(dir, authority, { name: 'numbered', hosts: ['IP:127.0.0.1'] })
    await issue(dir, authority, { name: 'named', hosts: ['DNS:localhost'] })
    master = await startTls('master', ['requirepass hush'])
    sentinel = await startTls('sentinel', [
      'requirepass guard',
      'tls-replication yes',
      `sentinel monitor main 127.0.0.1 ${master} 1`,
      'sentinel auth-pass main hush',
    ])
  })

  test('a server is reached', () => answers(`rediss://:hush@127.0.0.1:${master}`))

  test('a master is reached through its Sentinels', () =>
    answers(`rediss+sentinel://:hush@127.0.0.1:${sentinel}/main?sentinelPassword=guard`))

  test('the nodes of a Cluster are reached by the names that their certificates have', async () => {
    const node = await startTls('node', [
      'requirepass hush',
      'cluster-enabled yes',
      // By default 10,000 above the other port, where systems give ports to connections.
      `cluster-port ${await freePort()}`,
      'tls-cluster yes',
      'cluster-announce-hostname localhost',
      'cluster-preferred-endpoint-type hostname',
    ])
    await answers(`rediss://:hush@localhost:${node}`, 'CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await until(() => answers(`rediss+cluster://:hush@localhost:${node}`).then(() => true))
  })

  test('the authority, and the certificate of the client where the server asks for one, are files that the URL names', async () => {
    const strict = await startTls('strict', ['requirepass hush'])
    const url = `rediss://:hush@127.0.0.1:${strict}`
    assert.equal(await ask(`${url}?ca=${join(dir, 'ca.crt')}&${clientFiles}`, {}), 'PONG')
    assert.equal(
      await ask(`${url}/0?family=4&ca=${encodeURIComponent(join(dir, 'ca.crt'))}&${clientFiles}`, {}),
      'PONG',
    )
    const sentinels = `rediss+sentinel://:hush@127.0.0.1:${sentinel}/main?sentinelPassword=guard`
    assert.equal(await ask(`${sentinels}&ca=${join(dir, 'ca.crt')}`, {}), 'PONG')
    await assert.rejects(ask(`${url}?ca=${join(dir, 'ca.crt')}`, {}))
    await assert.rejects(ask(`${url}?${clientFiles}`, {}))
  })

  test('files that are missing, or no certificates, are one sentence that shows neither path nor contents', () => {
    const key = join(dir, 'named.key')
    const certificate = join(dir, 'named.crt')
    for (const [query, expected] of [
      [`ca=${join(dir, 'missing')}`, /^REDIS_URL names a file as ca that cannot be read \(ENOENT\)$/],
      [`ca=${dir}`, /^REDIS_URL names a file as ca that cannot be read \(EISDIR\)$/],
      [`cert=${key}&key=${certificate}`, /^REDIS_URL names files as ca, cert or key that are not certificates/],
      [`cert=${certificate}&key=${join(dir, 'ca.key')}`, /that belong together$/],
    ] as const)
      assert.throws(() => connectRedis(`rediss://127.0.0.1:1?${query}`, 'producer'), { message: expected })
  })

  test('a certificate of an unknown authority is refused', async () => {
    await assert.rejects(ask(`rediss://:hush@127.0.0.1:${master}`, {}))
    await assert.rejects(ask(`rediss+sentinel://:hush@127.0.0.1:${sentinel}/main?sentinelPassword=guard`, {}))
  })
})

/** Starts a Redis that has no port without TLS; resolves with its port when it answers there. */
async function startTls(role: 'master' | 'strict' | 'sentinel' | 'node', settings: string[]): Promise<number> {
  const port = await freePort()
  const file = join(dir, `${role}.conf`)
  const certificate = role === 'node' ? 'named' : 'numbered'
  const tls = [
    `tls-cert-file ${certificate}.crt`,
    `tls-key-file ${certificate}.key`,
    'tls-ca-cert-file ca.crt',
    `tls-auth-clients ${role === 'strict' ? 'yes' : 'no'}`,
  ]
  // A Sentinel writes to its file.
  writeFileSync(file, ['port 0', `tls-port ${port}`, 'bind 127.0.0.1', ...tls, ...settings, 'save ""', ''].join('\n'))
  const args = role === 'sentinel' ? [file, '--sentinel'] : [file]
  keeper.spawn({ ...program, args, cwd: dir, stopOrder: stopOrder.service }).stdin?.end()
  const password = role === 'sentinel' ? 'guard' : 'hush'
  const host = role === 'node' ? 'localhost' : '127.0.0.1'
  const parameters = role === 'strict' ? `?${clientFiles}` : ''
  await until(() => answers(`rediss://:${password}@${host}:${port}${parameters}`).then(() => true))
  return port
}

async function answers(url: string, ...command: string[]): Promise<void> {
  const answer = await ask(url, { NODE_EXTRA_CA_CERTS: join(dir, 'ca.crt') }, ...command)
  assert.equal(answer, command.length > 0 ? 'OK' : 'PONG')
}

/** In a process of its own: Node reads which authorities to trust when it starts. */
async function ask(url: string, env: NodeJS.ProcessEnv, ...command: string[]): Promise<string> {
  const program = `
    import { connectRedis } from ${JSON.stringify(new URL('../../queue/dist/redis/connect.js', import.meta.url))}
    const redis = connectRedis(process.env.REDIS_URL, 'consumer')
    redis.once('error', (error) => { console.error(error.message); process.exit(1) })
    console.log(await redis.call(...(process.argv.length > 1 ? process.argv.slice(1) : ['PING'])))
    process.exit(0)`
  const options = { env: { ...process.env, ...env, REDIS_URL: url }, timeout: 60_000 }
  return (await run(process.execPath, ['--input-type=module', '--eval', program, ...command], options)).stdout.trim()
}
