/**
 * A look without Grafana: one page at `/` of the ops port that shows the queue, its workers and what the gateways answer,
 * renewed every second. For the first five minutes, and for whoever is on call with a laptop or a phone.
 */
import { readFile } from 'node:fs/promises'
import type { PasswordClient, RedisConnection } from '@spillway/client'
import type { QueueReporter } from '@spillway/client/queue/report'
import type { FastifyPluginAsync } from 'fastify'
import type { GatewayMetrics } from '../../http/metrics.js'
import { startGatewayReports } from './gateways.js'
import { startLiveHistory } from './history.js'
import { liveState } from './state.js'

export interface LiveOptions {
  metrics: GatewayMetrics
  passwords: PasswordClient
  reporter: QueueReporter
  redis: RedisConnection
  queuePrefix: string
  boardPath: string
}

/** Beside this module, in the sources as in what is built from them. */
const FILES_DIR = new URL('page/', import.meta.url)
const files = [
  { path: '/', name: 'page.html', type: 'text/html; charset=utf-8' },
  { path: '/live.css', name: 'live.css', type: 'text/css; charset=utf-8' },
  { path: '/live.js', name: 'live.js', type: 'text/javascript; charset=utf-8' },
  { path: '/chart.js', name: 'chart.js', type: 'text/javascript; charset=utf-8' },
]

export const livePlugin: FastifyPluginAsync<LiveOptions> = async (app, options) => {
  for (const { path, name, type } of files) {
    const content = (await readFile(new URL(name, FILES_DIR), 'utf8')).replaceAll('{{boardPath}}', options.boardPath)
    app.get(path, async (_request, reply) => reply.type(type).header('cache-control', 'no-cache').send(content))
  }
  const history = startLiveHistory(options.passwords)
  const gateways = startGatewayReports({ ...options, log: app.log })
  app.addHook('onClose', async () => {
    history.close()
    await gateways.close()
  })
  app.get('/live.json', async (_request, reply) =>
    reply.header('cache-control', 'no-store').send(await liveState({ ...options, gateways, history })),
  )
}
