/** The settings of the queue, which gateways and workers have in common. */
import { required, secret, text } from '@spillway/common/settings'
import { DEFAULT_QUEUE_PREFIX } from './wire/job.js'

export const queueSettings = {
  REDIS_URL: secret(
    text(
      'redis://127.0.0.1:6379',
      'Redis: `redis://`, `redis+sentinel://` or `redis+cluster://`, `rediss` for TLS; several servers separated by white space',
    ),
  ),
  QUEUE_PREFIX: text(
    DEFAULT_QUEUE_PREFIX,
    "Prefix of the queue's keys, a word in braces; the same at gateways and workers, and in the autoscaler's key",
    { pattern: '^\\{[\\w-]+\\}$' },
  ),
  SPILLWAY_SEAL_KEYS: secret(
    required(
      'Keys that seal jobs, verdicts and tickets, and tag refresh tokens: `kid:base64` of 32 bytes, comma-separated; the first seals, all open; the same at gateways and workers',
    ),
  ),
} as const
