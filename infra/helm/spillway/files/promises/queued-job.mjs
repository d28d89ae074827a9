// A job shows in the queue: while logins are asked for, what the scaler counts grows.
import { randomUUID } from 'node:crypto'
import { connectRedis } from '@spillway/queue/client'

const { GATEWAY_URL, REDIS_URL = '', QUEUE_KEYS = '' } = process.env
const LOGINS = 50

const redis = connectRedis(REDIS_URL, 'consumer')

/** Lua: the jobs in all keys, of either type, at one moment: the first job creates a key. */
const COUNT = `
local jobs = 0
for _, key in ipairs(KEYS) do
  local type = redis.call('TYPE', key).ok
  if type == 'list' then jobs = jobs + redis.call('LLEN', key) end
  if type == 'zset' then jobs = jobs + redis.call('ZCARD', key) end
end
return jobs`
const keys = QUEUE_KEYS.split(',')

const count = () => redis.eval(COUNT, keys.length, ...keys)

/** A login of an unknown account: it costs a worker as much, and leaves nothing behind. */
async function askForLogin() {
  const response = await fetch(new URL('/v1/login', GATEWAY_URL), {
    method: 'POST',
    headers: { 'content-type': 'application/json', prefer: 'respond-async' },
    body: JSON.stringify({ email: `helm-test-${randomUUID()}@example.com`, password: randomUUID() }),
  })
  return response.status
}

try {
  let asking = true
  let most = 0
  const logins = Promise.all(Array.from({ length: LOGINS }, askForLogin)).finally(() => {
    asking = false
  })
  while (asking) most = Math.max(most, await count())
  const statuses = [...new Set(await logins)].join()
  if (most === 0) throw new Error(`${LOGINS} logins were answered with ${statuses}, and never a job in ${QUEUE_KEYS}`)
  console.log(`${LOGINS} logins, and up to ${most} jobs in the queue at a time`)
} finally {
  redis.disconnect()
}
