/**
 * The door for operators: Bull Board over the queue, as a Fastify plugin for a listener that has authenticated its visitors.
 * It shows how long a job waited and was hashed, what came of it and who did it, and nothing of what was sealed.
 */
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { FastifyAdapter } from '@bull-board/fastify'
import type { FastifyPluginAsync } from 'fastify'
import { describeData, describeJob } from './board-words.js'
import { openQueue } from './open-queue.js'
import { connectRedis } from './redis.js'

export interface BoardOptions {
  redisUrl: string
  queuePrefix: string
  /** Refuse every change, with 405. */
  readOnly: boolean
  /** The path under which the plugin is registered. */
  basePath: string
  /** Where logs are searched, with `{jobId}` in it; empty for nowhere. */
  logUrl: string
  /** Further pages of the same listener. */
  links: { text: string; url: string }[]
}

export const boardPlugin: FastifyPluginAsync<BoardOptions> = async (app, options) => {
  const { redisUrl, queuePrefix, readOnly, basePath, logUrl, links } = options
  const redis = connectRedis(redisUrl, 'producer')
  redis.on('error', (error) => app.log.warn({ err: error, connection: 'board' }, 'redis connection failed'))
  const queue = openQueue({ redis, prefix: queuePrefix, log: app.log })

  const shown = new BullMQAdapter(queue, {
    readOnlyMode: readOnly,
    description: 'Hash and verify jobs; what they carry is sealed',
    ...(logUrl === ''
      ? {}
      : {
          externalJobUrl: ({ id }) => ({
            displayText: 'Log',
            href: logUrl.replaceAll('{jobId}', encodeURIComponent(String(id))),
          }),
        }),
  })
  shown.setFormatter('name', describeJob)
  shown.setFormatter('data', describeData)

  const serverAdapter = new FastifyAdapter().setBasePath(basePath)
  createBullBoard({
    queues: [shown],
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: 'Spillway',
        hideDocsLink: true,
        miscLinks: links,
        pollingInterval: { showSetting: true },
      },
      handlerHooks: {
        // The board's own read-only mode answers some changes with a 200 that did nothing.
        before: ({ method }) =>
          readOnly && method !== 'get'
            ? { allow: false, status: 405, message: 'The queue is read-only here' }
            : undefined,
      },
    },
  })
  // Errors are the listener's own to answer: thrown here, they go on to its handler.
  serverAdapter.setErrorHandler((error) => {
    throw error
  })
  await app.register(serverAdapter.registerPlugin(), { prefix: basePath })

  app.addHook('onClose', async () => {
    await queue.close()
    redis.disconnect()
  })
}
