/** One Redis server of several, with its client and its health. */
import { createQueueClient, type QueueClient } from '../passwords/one-queue.js'
import type { QueueClientOptions } from '../passwords/password-client.js'
import type { Shard } from '../redis/shards.js'
import { createHealth, type Health } from './health.js'

export interface OpenShard extends Shard {
  client: QueueClient
  health: Health
}

export function openShard(shard: Shard, options: QueueClientOptions): OpenShard {
  const client = createQueueClient(shard, options)
  const health = createHealth({
    isReady: client.isReady,
    isKnown: () => client.load().known,
    reading: client.reading,
    hasWorkers: () => client.load().jobsPerSecond > 0,
    probe: client.probe,
  })
  return { ...shard, client, health }
}
