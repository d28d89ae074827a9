// A job shows in the queue: while logins are asked for, what the scaler counts grows.
import { randomUUID } from 'node:crypto'
import { connectRedis } from '@spillway/worker/client'

const { GATEWAY_URL, REDIS_URL = '', QUEUE_KEYS = '' } = process.env
const LOGINS = 50

const redis = connectRedis(REDIS_URL, 'consumer')

async function countJobs() {
  const counts = QUEUE_KEYS.split(',').map(async (key) =>
    (await redis.type(key)) === 'zset' ? redis.zcard(key) : redis.llen(key),
  )
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

/** Of accounts that are not there: these cost a worker as much as others, and leave nothing behind. */
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
  while (asking) most = Math.max(most, await countJobs())
  const statuses = [...new Set(await logins)].join()
  if (most === 0) throw new Error(`${LOGINS} logins were answered with ${statuses}, and never a job in ${QUEUE_KEYS}`)
  console.log(`${LOGINS} logins, and up to ${most} jobs in the queue at a time`)
} finally {
  redis.disconnect()
}
