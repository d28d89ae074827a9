// What `helm test` promises, by the programs that its pods run, where the gateway's image has its
// packages.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createNamespace } from '@spillway/infra/harness/namespace'
import { openSpillway } from '@spillway/infra/harness/spillway'
import { afterAll, test } from 'vitest'

const programs = fileURLToPath(new URL('../../spillway/files/promises/', import.meta.url))
const gatewayDir = fileURLToPath(new URL('../../../../api', import.meta.url))

const namespace = await createNamespace()
const { redisUrl, queuePrefix } = namespace
const spillway = openSpillway(namespace)
afterAll(async () => {
  assert.deepEqual(await spillway.close(), [])
  await namespace.close()
})
await spillway.worker()
const gateway = await spillway.gateway()
await spillway.knowsWorkers()

async function promise(program: string, queue = `${queuePrefix}:passwords`): Promise<string> {
  const source = await readFile(join(programs, program), 'utf8')
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', source], {
    cwd: gatewayDir,
    env: {
      GATEWAY_URL: gateway.url,
      REDIS_URL: redisUrl,
      QUEUE_PREFIX: queuePrefix,
      QUEUE_KEYS: ['active', 'prioritized', 'wait'].map((key) => `${queue}:${key}`).join(),
    },
  })
  return stdout
}

for (const program of await readdir(programs)) {
  test(`${program} finds what it promises`, async () => assert.notEqual(await promise(program), ''))
}

test('keys of no queue are found out', async () => {
  for (const program of ['queued-job.mjs', 'scaler-key.mjs'])
    await assert.rejects(promise(program, 'no-queue'), ({ stderr }: { stderr: string }) =>
      /^Error: (.* never a job|There is no queue) /m.test(stderr),
    )
})
