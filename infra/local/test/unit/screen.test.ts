// What `pnpm start` prints of servers that are not its own: nothing of their URLs, which may hold passwords.
import assert from 'node:assert/strict'
import { readEnvironment } from '@spillway/infra/start/places'
import { screen } from '@spillway/infra/start/screen'
import { test } from 'vitest'

test.each([
  ['REDIS_URL', 'redis+sentinel://ann:hush@cache/main?sentinelPassword=hush'],
  ['REDIS_URL', 'rediss://:hush@cache/4?family=6'],
  ['DATABASE_URL', 'postgresql://ann:hush@there/login?password=hush'],
])('%s of %s is named, not printed', (name, url) => {
  const environment = readEnvironment({ [name]: url })
  const { databaseUrl = 'postgresql://own', redisUrl = 'redis://own' } = environment
  const ports = { port: 1, opsPort: 2, workerOpsPort: 3, servicePort: undefined }
  const printed = screen(
    { ports, logDir: '/logs', environment, databaseUrl, redisUrl },
    { user: 'operator', password: 'secret' },
  )
  assert.match(printed, new RegExp(`the one of ${name}`))
  assert.doesNotMatch(printed, /hush|ann|cache|there/)
})
