// The scaler watches lists of a queue that is there: a list that never existed reads as empty for ever, and nothing scales.
import { connectRedis } from '@spillway/worker/client'

const { REDIS_URL, WAITING_LIST, ACTIVE_LIST } = process.env
const redis = connectRedis(REDIS_URL, 'consumer')
try {
  const meta = WAITING_LIST.replace(/:wait$/, ':meta')
  if ((await redis.exists(meta)) === 0) {
    throw new Error(
      `${meta} is not there, so ${WAITING_LIST} is a list of no queue: compare redis.queuePrefix with QUEUE_PREFIX`,
    )
  }
  for (const key of [WAITING_LIST, ACTIVE_LIST]) {
    const type = await redis.type(key)
    if (type !== 'list' && type !== 'none') throw new Error(`${key} is a ${type}, not a list`)
    console.log(`${key}: ${await redis.llen(key)} jobs`)
  }
} finally {
  redis.disconnect()
}
