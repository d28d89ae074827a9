// The command `pnpm --filter @spillway/infra containers`: builds the images with a Docker engine,
// looks into them, and starts compose.yaml with all its services, to a login. Containers run as in
// a cluster: not as root, on a read-only file system, without capabilities, with limits; and as
// OpenShift does, as any user of group 0.
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApiClient } from '@spillway/infra/harness/api-client'
import { runWithKeeper } from '@spillway/infra/processes/command'
import { until } from '@spillway/infra/processes/until'
import { readinessOf } from '@spillway/infra/start/member'
import { parse } from 'yaml'
import { buildImages, docker, images, isHere, obtain, openCompose, openDocker } from './engine.ts'

const composeFile = fileURLToPath(new URL('../compose.yaml', import.meta.url))
/** Of a range that OpenShift gives to a namespace. */
const ANY_USER = '1000650000:0'
/** Other ports than compose.yaml publishes, which may be in use. */
const OVERRIDE = `services:
  migration: { user: "${ANY_USER}" }
  gateway: { ports: !override ["127.0.0.1::3000", "127.0.0.1::9464"] }
  prometheus: { ports: !override ["127.0.0.1::9090"] }
  grafana: { ports: !override ["127.0.0.1::3000"] }
`

await runWithKeeper(async (keeper) => {
  await openDocker(keeper)
  await buildImages(console.log)
  await contents()
  const dir = await mkdtemp(join(tmpdir(), 'spillway-containers-'))
  const override = join(dir, 'compose.yaml')
  await writeFile(override, OVERRIDE)
  const program = await openCompose(console.log)
  const compose = (...args: string[]) =>
    program('--project-name', 'spillway-containers', '--file', composeFile, '--file', override, ...args)
  keeper.onClosing(() => void compose('kill').catch(() => {}))
  try {
    await logsIn(compose)
  } finally {
    await compose('down', '--volumes', '--remove-orphans')
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
    const [bytes, user] = (await docker('image', 'inspect', '--format={{.Size}} {{.Config.User}}', image)).split(' ')
    assert.equal(user?.trim(), '1000:1000')
    console.log(`✔ ${image}: ${Math.round(Number(bytes) / 1e6)} MB with its base, and only what it runs`)
  }
}

/** Starts all services, registers and logs in, and stops them. */
async function logsIn(compose: typeof docker): Promise<void> {
  const file: { services: Record<string, { image: string }> } = parse(await readFile(composeFile, 'utf8'), {
    merge: true,
  })
  const { gateway: _, worker: __, migration: ___, grafana, ...fromHub } = file.services
  await obtain(
    Object.values(fromHub).map(({ image }) => image),
    console.log,
  )
  const hasGrafana = grafana !== undefined && (await isHere(grafana.image))
  if (!hasGrafana) console.log('No hub has Grafana: all other services are started.')
  const services = Object.keys(file.services).filter((name) => name !== 'grafana' || hasGrafana)
  await compose('up', '--detach', '--no-build', '--scale', 'worker=2', ...services)
  const urlOf = async (service: string, port: number) =>
    `http://${(await compose('port', service, String(port))).trim()}`
  const url = await urlOf('gateway', 3_000)
  const sees = (workers: number) =>
    until(async () => (await readinessOf(url)).workers === workers, { what: `a gateway that sees ${workers} workers` })
  await sees(2)
  console.log(`✔ ${services.length} services run: the migration as any user of group 0, a second worker by --scale`)

  const key = (await compose('exec', 'gateway', 'cat', '/keys/seal/seal-keys')).trim()
  const env = ['--env=SPILLWAY_SEAL_KEYS_FILE=', `--env=SPILLWAY_SEAL_KEYS=${key}`]
  const anyUsers = (await compose('run', '--detach', '--no-deps', `--user=${ANY_USER}`, ...env, 'worker')).trim()
  await sees(3)
  const api = createApiClient(url)
  const account = { email: 'someone@example.com', password: 'correct horse battery' }
  assert.equal((await api.register(account)).status, 201)
  assert.equal((await api.login(account)).status, 200)
  api.close()
  console.log('✔ an account is registered and logs in; a third worker runs as any user of group 0')

  const script = `for (const dir of ['.', '/tmp', '/app']) try { require('fs').writeFileSync(dir + '/x', ''); console.log(dir) } catch {}`
  for (const service of ['gateway', 'worker'])
    assert.equal(await compose('exec', service, 'node', '--eval', script), '')
  const password = (await compose('exec', 'gateway', 'cat', '/keys/gateway/ops-password')).trim()
  const authorization = `Basic ${btoa(`operator:${password}`)}`
  const runbooks = await fetch(`${await urlOf('gateway', 9_464)}/runbooks`, { headers: { authorization } })
  assert.match(await runbooks.text(), /<h2 id=/)
  const query = `${await urlOf('prometheus', 9_090)}/api/v1/query?query=sum(up)`
  const up = async () => /"3"\]/.test(await (await fetch(query)).text())
  await until(up, { what: 'Prometheus with figures of the gateway and two workers' })
  if (hasGrafana) await until(async () => (await fetch(`${await urlOf('grafana', 3_000)}/api/health`)).ok)
  console.log(
    '✔ containers write nowhere, the ops port has the runbooks, Prometheus reads the gateway and both workers',
  )

  await compose('stop', '--timeout=30', 'gateway', 'worker')
  await docker('stop', '-t', '30', anyUsers)
  const ids = (await compose('ps', '--all', '--quiet', 'keys', 'migration', 'gateway', 'worker')).trim().split('\n')
  for (const id of [...ids, anyUsers]) {
    const log = await docker('logs', id)
    assert.equal((await docker('inspect', '--format={{.State.ExitCode}}', id)).trim(), '0', log)
    // By the limit of one CPU in compose.yaml.
    if (/worker ready/.test(log)) assert.match(log, /"concurrency":1\b/)
  }
  console.log(`✔ ${ids.length + 1} containers ended with exit code 0, each worker chose one slot`)
}
