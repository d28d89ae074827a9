// A job shows in the queue: while logins are asked for, the lists that the scaler watches grow.
import { randomUUID } from 'node:crypto'
import { connectRedis } from '@spillway/worker/client'

const { GATEWAY_URL, REDIS_URL, WAITING_LIST, ACTIVE_LIST } = process.env
const LOGINS = 50

const redis = connectRedis(REDIS_URL, 'consumer')
try {
  let asking = true
  let most = 0
  // Of accounts that are not there: these cost a worker as much as others, and leave nothing behind.
  const logins = Promise.all(
    Array.from({ length: LOGINS }, () =>
      fetch(new URL('/v1/login', GATEWAY_URL), {
        method: 'POST',
        headers: { 'content-type': 'application/json', prefer: 'respond-async' },
        body: JSON.stringify({ email: `helm-test-${randomUUID()}@example.com`, password: randomUUID() }),
      }),
    ),
  ).finally(() => {
    asking = false
  })
  while (asking) most = Math.max(most, (await redis.llen(WAITING_LIST)) + (await redis.llen(ACTIVE_LIST)))
  const statuses = (await logins).map((response) => response.status)
  if (most === 0)
    throw new Error(`${LOGINS} logins (answers: ${[...new Set(statuses)]}) and never a job in ${WAITING_LIST}`)
  console.log(`${LOGINS} logins, and up to ${most} jobs in the queue at a time`)
} finally {
  redis.disconnect()
}
