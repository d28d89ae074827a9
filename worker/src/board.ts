/**
 * The door for operators: Bull Board over the queue, as a Fastify plugin for a listener that has authenticated its visitors.
 * It shows when a job was made and must be done, what came of it and who did it, and nothing of what was sealed.
 */
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { FastifyAdapter } from '@bull-board/fastify'
import { Queue } from 'bullmq'
import type { FastifyPluginAsync } from 'fastify'
import { jobData, QUEUE_NAME } from './protocol/job.js'
import { connectRedis } from './redis.js'

export interface BoardOptions {
  redisUrl: string
  queuePrefix: string
  /** Refuse every change, with 405. */
  readOnly: boolean
  /** The path under which the plugin is registered. */
  basePath: string
}

export const boardPlugin: FastifyPluginAsync<BoardOptions> = async (
  app,
  { redisUrl, queuePrefix, readOnly, basePath },
) => {
  const redis = connectRedis(redisUrl, 'producer')
  redis.on('error', (error) => app.log.warn({ err: error, connection: 'board' }, 'redis connection failed'))
  const queue = new Queue(QUEUE_NAME, {
    connection: redis,
    prefix: queuePrefix,
    skipWaitingForReady: true,
    skipVersionCheck: true,
    skipMetasUpdate: true,
  })
  queue.on('error', (error) => app.log.warn({ err: error }, 'queue error'))

  const shown = new BullMQAdapter(queue, {
    readOnlyMode: readOnly,
    description: 'Hash and verify jobs; contents are sealed',
  })
  shown.setFormatter('data', (data: unknown) => {
    if (!jobData.Check(data)) return { malformed: true }
    return { enqueuedAt: new Date(data.enqueuedAt).toISOString(), deadline: new Date(data.deadline).toISOString() }
  })

  const serverAdapter = new FastifyAdapter().setBasePath(basePath)
  createBullBoard({
    queues: [shown],
    serverAdapter,
    options: { uiConfig: { boardTitle: 'Spillway', pollingInterval: { showSetting: true } } },
  })
  await app.register(serverAdapter.registerPlugin(), { prefix: basePath })

  app.addHook('onClose', async () => {
    await queue.close()
    redis.disconnect()
  })
}
