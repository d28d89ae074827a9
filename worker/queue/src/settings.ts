/** The settings of the queue, which gateways and workers have in common. */
import { required, secret, text } from '@spillway/common/settings'
import { DEFAULT_QUEUE_PREFIX } from './wire/job.js'

export const queueSettings = {
  REDIS_URL: secret(
    text('redis://127.0.0.1:6379', 'Redis URL: `redis://`, `redis+sentinel://`, `redis+cluster://`; `rediss` for TLS'),
  ),
  QUEUE_PREFIX: text(
    DEFAULT_QUEUE_PREFIX,
    "Prefix of the queue's keys, a word in braces; gateways, workers and the autoscaler's key must have the same prefix",
    { pattern: '^\\{[\\w-]+\\}$' },
  ),
  SPILLWAY_SEAL_KEYS: secret(
    required(
      'Keys that seal jobs, results and tickets, and tag refresh tokens: `kid:base64` of 32 bytes, comma-separated; the first key seals, all keys open; gateways and workers must have the same keys',
    ),
  ),
} as const
