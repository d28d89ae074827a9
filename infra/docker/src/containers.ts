// The command `pnpm --filter @spillway/infra containers`: builds the images with a Docker engine,
// and runs them as in a cluster: not as root, on a read-only file system, without capabilities,
// with limits; and as OpenShift does, as any user of group 0.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runWithKeeper } from '@spillway/infra/processes/command'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { freePort } from '@spillway/infra/processes/port'
import { run } from '@spillway/infra/processes/run'
import { until } from '@spillway/infra/processes/until'
import { createApiClient } from '@spillway/infra/rig/api-client'
import { startServices } from '@spillway/infra/services/services'
import { readinessOf } from '@spillway/infra/start/member'
import { parse } from 'yaml'
import { buildImages, CONFINED, docker, images, openDocker } from './engine.ts'

const compose = parse(readFileSync(new URL('../compose.yaml', import.meta.url), 'utf8'), { merge: true })
const makeKeys = fileURLToPath(new URL('../make-keys.mjs', import.meta.url))
const CPUS = 1
const MEMORY = '512m'
/** Of a range that OpenShift gives to a namespace. */
const ANY_USER = '--user=1000650000:0'

await runWithKeeper(async (keeper) => {
  await openDocker(keeper)
  await buildImages(console.log)
  await contents()
  await writesNowhere()
  const dir = await mkdtemp(join(tmpdir(), 'spillway-containers-'))
  await chmod(dir, 0o711)
  try {
    await logsIn(keeper, dir)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
})

/** An image holds what its process needs, and nothing to build or test with. */
async function contents(): Promise<void> {
  const list = async (image: string, dir: string) =>
    (await docker('run', '--rm', '--entrypoint=ls', image, '-A', dir)).trim().split('\n')
  for (const [target, image] of Object.entries(images)) {
    const engine = target === 'worker' ? ['engine'] : []
    assert.deepEqual((await list(image, '.')).sort(), ['dist', ...engine, 'node_modules', 'package.json'])
    if (target === 'worker') assert.deepEqual(await list(image, 'engine'), ['spillway.node'])
    // The time and the paths of the build.
    assert.ok(!(await list(image, 'node_modules')).includes('.modules.yaml'))
    const packages = (await list(image, 'node_modules/.pnpm')).map((name) => name.replace(/(?<=.)@.*/, ''))
    for (const name of ['typescript', 'prisma', 'tsx', '@biomejs+biome', '@spillway+infra'])
      assert.ok(!packages.includes(name), `${name} is in ${image}`)
    const [bytes] = (await docker('image', 'inspect', '--format={{.Size}}', image)).split('\n')
    console.log(`✔ ${image}: ${Math.round(Number(bytes) / 1e6)} MB with its base, and only what it runs`)
  }
}

async function writesNowhere(): Promise<void> {
  const script = `for (const dir of ['.', '/tmp', '/app']) try { require('fs').writeFileSync(dir + '/x', ''); console.log(dir) } catch {}`
  assert.equal(await docker('run', '--rm', ...CONFINED, images.worker, '--eval', script), '')
  console.log('✔ a container writes nowhere')
}

/** Migrates, registers and logs in, by the command lines of compose.yaml; all exit with code 0. */
async function logsIn(keeper: Keeper, dir: string): Promise<void> {
  const password = 'only-for-this-run'
  const services = await startServices({ keeper, dir, password, durable: false, say: console.log })
  const keys = join(dir, 'keys')
  await run(process.execPath, [makeKeys, keys])
  await chmod(keys, 0o755)
  // For whichever user a container has, and whoever runs this.
  for (const file of ['seal/seal.env', 'gateway/jwt.env', 'gateway/ops.env']) await chmod(join(keys, file), 0o444)
  const [port, opsPort, workerPort] = [await freePort(), await freePort(), await freePort()]
  const { databaseUrl, redisUrl } = services
  const env = { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, PORT: port, OPS_PORT: opsPort }
  type Settings = Record<string, string | number>
  const start = async (service: 'migration' | 'gateway' | 'worker', settings: Settings, ...options: string[]) => {
    const variables = Object.entries(settings).map(([name, value]) => `--env=${name}=${value}`)
    const limits = [`--cpus=${CPUS}`, `--memory=${MEMORY}`, `--volume=${keys}:/keys:ro`]
    const { image, command } = compose.services[service]
    const id = await docker('run', '--detach', ...CONFINED, ...options, ...limits, ...variables, image, ...command)
    keeper.onClosing(() => void docker('rm', '--force', id.trim()).catch(() => {}))
    return id.trim()
  }
  const end = async (id: string) => {
    const code = (await docker('wait', id)).trim()
    const log = await docker('logs', id)
    await docker('rm', id)
    assert.equal(code, '0', log)
    return log
  }

  await end(await start('migration', env, ANY_USER))
  console.log('✔ the migration ends with exit code 0, as any user of group 0')
  const gateway = await start('gateway', env)
  const worker = await start('worker', { REDIS_URL: redisUrl, OPS_PORT: workerPort }, ANY_USER)
  const url = `http://127.0.0.1:${port}`
  const sees = async () => (await readinessOf(url)).workers === 1
  await until(sees, { timeoutMs: 60_000, what: 'a gateway that sees the worker' })
  const user = await docker('top', gateway, '-o', 'pid,uid,gid')
  assert.match(user, /^\d+ +1000 +1000$/m)
  const api = createApiClient(url)
  const account = { email: 'someone@example.com', password: 'correct horse battery' }
  assert.equal((await api.register(account)).status, 201)
  assert.equal((await api.login(account)).status, 200)
  api.close()
  for (const id of [gateway, worker]) await docker('stop', '--time=30', id)
  await end(gateway)
  assert.match(await end(worker), new RegExp(`"concurrency":${CPUS}\\b`))
  console.log(
    `✔ an account is registered and logs in; a worker with ${CPUS} CPU chooses ${CPUS} slot, as any user of group 0; both end with exit code 0`,
  )
  await services.close()
}
