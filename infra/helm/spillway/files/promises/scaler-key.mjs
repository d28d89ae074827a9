// The scaler watches keys of a queue that is there: a key that never existed reads as empty for
// ever, and nothing scales.
import { connectRedis } from '@spillway/queue/client'

const { REDIS_URL = '', QUEUE_PREFIX, QUEUE_KEYS = '' } = process.env
const redis = connectRedis(REDIS_URL, 'consumer')
try {
  const [first = ''] = QUEUE_KEYS.split(',')
  const queue = first.slice(0, first.lastIndexOf(':'))
  // Written by every worker as it starts.
  if ((await redis.exists(`${queue}:meta`)) === 0)
    throw new Error(`There is no queue ${queue}: do the workers run, and is ${QUEUE_PREFIX} their QUEUE_PREFIX?`)
  for (const key of QUEUE_KEYS.split(',')) {
    const type = await redis.type(key)
    if (!['list', 'zset', 'none'].includes(type)) throw new Error(`${key} is a ${type}, which holds no jobs`)
    console.log(`${key}: ${type}`)
  }
} finally {
  redis.disconnect()
}
