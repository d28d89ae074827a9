// The result of the Dockerfile's steps, run as in a cluster: not as root, on a read-only file system.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openKeeper, stopOrder } from '@spillway/infra/processes/keeper'
import { createNamespace, scratchDir, until } from '@spillway/infra/rig'
import { type TestContext, test } from 'vitest'
import { parse } from 'yaml'
import { findImages } from '../../src/images.ts'
import { canConfine, containerCommand } from '../../src/oci.ts'

const compose = parse(readFileSync(new URL('../../compose.yaml', import.meta.url), 'utf8'), { merge: true })
const images = await findImages()
const skip = images
  ? false
  : 'The images of this source have not been built here: run pnpm --filter @spillway/infra check:docker'

interface Container {
  pid: number
  lines: Record<string, unknown>[]
  output(): string
  exited: Promise<number | null>
  stop(): void
}

function start(
  t: TestContext,
  target: 'gateway' | 'worker',
  options: { args?: string[]; env: NodeJS.ProcessEnv },
): Container {
  assert.ok(images)
  const keeper = openKeeper()
  t.onTestFinished(() => keeper.close())
  const child = keeper.spawn({ ...containerCommand(images[target], options), stopOrder: stopOrder.tool })
  assert.ok(child.pid && child.stdout && child.stderr)
  const lines: Record<string, unknown>[] = []
  const text: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      text.push(line)
      if (line.startsWith('{')) lines.push(JSON.parse(line))
    })
  }
  const exited = new Promise<number | null>((resolve) => child.on('close', resolve))
  return { pid: child.pid, lines, output: () => text.join('\n'), exited, stop: () => child.kill('SIGTERM') }
}

async function ready(container: Container, message: string): Promise<Record<string, unknown>> {
  const find = () => container.lines.find(({ msg }) => msg === message)
  return await until(find, { timeoutMs: 30_000, what: `"${message}"` }).catch((error: unknown) => {
    throw new Error(`It said: ${container.output()}`, { cause: error })
  })
}

test.skipIf(skip)(
  'the images migrate, register and log in, and stop with exit code 0',
  { timeout: 90_000 },
  async (t) => {
    const { databaseUrl, redisUrl, queuePrefix, close } = await createNamespace()
    t.onTestFinished(close)
    const keys = await scratchDir(t)
    execFileSync(process.execPath, [fileURLToPath(new URL('../../make-keys.mjs', import.meta.url)), keys])
    const env = { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, QUEUE_PREFIX: queuePrefix, PORT: '0', OPS_PORT: '0' }
    /** As compose.yaml has it: keys from files. */
    const argsOf = (service: string): string[] =>
      compose.services[service].command.map((word: string) => word.replace('/keys', keys))
    const migration = start(t, 'gateway', { args: argsOf('migration'), env })
    assert.equal(await migration.exited, 0, migration.output())

    const gateway = start(t, 'gateway', { args: argsOf('gateway'), env })
    const worker = start(t, 'worker', { args: argsOf('worker'), env })
    await ready(worker, 'worker ready')
    const { url } = await ready(gateway, 'gateway listening')
    const seesWorker = async (): Promise<boolean> => {
      const readiness: { workers: number } = JSON.parse(await (await fetch(`${url}/readyz`)).text())
      return readiness.workers === 1
    }
    await until(seesWorker, { what: 'a gateway that sees the worker' })
    if (canConfine) {
      for (const { pid } of [gateway, worker])
        assert.match(await readFile(`/proc/${pid}/status`, 'utf8'), /^Uid:\t1000\t1000/m)
    }
    for (const [path, expected] of [
      ['/v1/users', 201],
      ['/v1/login', 200],
    ] as const) {
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email: 'someone@example.com', password: 'correct horse battery' }),
      })
      assert.equal(response.status, expected, await response.text())
    }
    assert.match(await readFile(`/proc/${worker.pid}/maps`, 'utf8'), /argon2\.linux-x64-gnu\.node|argon2/)
    for (const container of [gateway, worker]) {
      container.stop()
      assert.equal(await container.exited, 0, container.output())
    }
  },
)

test.skipIf(skip || (canConfine ? false : 'needs root'))('a process in an image can write nowhere', async (t) => {
  const script =
    "for (const path of ['.', '/tmp', '/app']) try { require('fs').writeFileSync(path + '/x', ''); console.log(path) } catch {}"
  const container = start(t, 'worker', { args: ['--eval', script], env: {} })
  assert.equal(await container.exited, 0)
  assert.equal(container.output(), '')
})

test.skipIf(skip)('an image holds what its process needs, and nothing to build or test with', async () => {
  assert.ok(images)
  for (const [target, image] of Object.entries(images)) {
    const app = join(image.root, image.workdir)
    const own =
      target === 'worker'
        ? ['dist', 'engine', 'node_modules', 'package.json']
        : ['dist', 'node_modules', 'package.json']
    assert.deepEqual((await readdir(app)).sort(), own)
    // Without cargo the folder is empty.
    if (target === 'worker') assert.ok(['', 'spillway.node'].includes((await readdir(join(app, 'engine'))).join()))
    const packages = (await readdir(join(app, 'node_modules/.pnpm'))).map((name) => name.replace(/(?<=.)@.*/, ''))
    for (const name of ['typescript', 'prisma', 'tsx', 'pg-boss', '@biomejs+biome', '@spillway+local'])
      assert.ok(!packages.includes(name), name)
    assert.ok(existsSync(join(app, 'dist')))
    // The time and the paths of its build.
    assert.ok(!existsSync(join(app, 'node_modules/.modules.yaml')))
  }
})
