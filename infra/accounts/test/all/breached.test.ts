// A list of breached passwords in a gateway.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { breached } from '@spillway/infra/accounts/breached'
import { createApiClient } from '@spillway/infra/harness/api-client'
import { createNamespace, scratchDir } from '@spillway/infra/harness/namespace'
import { openSpillway } from '@spillway/infra/harness/spillway'
import { test } from 'vitest'

const sha1 = (password: string) => createHash('sha1').update(password).digest('hex').toUpperCase()

test('a gateway refuses new passwords of its list, in any case where the list has small letters, and takes others', async (t) => {
  const namespace = await createNamespace()
  const worker = { ARGON2_MEMORY_KIB: '1024', ARGON2_TIME: '1' }
  const spillway = openSpillway({ ...namespace, env: worker, workerEnv: { WORKER_CONCURRENCY: '1' } })
  t.onTestFinished(async () => {
    await spillway.close()
    await namespace.close()
  })
  const dir = await scratchDir(t)
  const [file, out] = [join(dir, 'public.txt'), join(dir, 'gateway.list')]
  const lines = ['a small breached phrase', 'Another Breached Phrase'].map((password) => `${sha1(password)}:1`)
  await writeFile(file, lines.sort().join('\r\n'))
  await breached(['build', file, '--min-count', '1', '--out', out], () => undefined)
  await spillway.worker()
  const { url } = await spillway.gateway({ env: { BREACHED_PASSWORDS_FILE: out } })
  const api = createApiClient(url)
  t.onTestFinished(api.close)
  const register = (password: string) => api.register({ email: `${sha1(password)}@example.test`, password })
  for (const refused of [
    'a small breached phrase',
    'A SMALL breached phrase',
    'Another Breached Phrase',
    'Password1',
  ]) {
    const { status, body } = await register(refused)
    assert.equal(status, 422, refused)
    assert.match(JSON.stringify(body), /password_too_common/)
  }
  assert.notEqual((await register('a small phrase of nobody')).status, 422)
})
