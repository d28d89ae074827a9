/** The live page at `/` of the ops port: the queue, its workers and the outcomes of requests, updated every second. Needs no Grafana. */
import { readFile } from 'node:fs/promises'
import type { QueueReporter } from '@spillway/client/queue/report'
import type { PasswordClient, RedisConnection } from '@spillway/client/queue-client'
import type { FastifyPluginAsync } from 'fastify'
import type { GatewayMetrics } from '../../http/metrics.js'
import { startGatewayReports } from './gateways.js'
import { startLiveHistory } from './history.js'
import { liveState } from './state.js'

export interface LiveOptions {
  metrics: GatewayMetrics
  passwords: PasswordClient
  reporter: QueueReporter
  redis: readonly RedisConnection[]
  queuePrefix: string
  /** What a proxy has before the paths of the pages; empty for nothing. */
  basePath: string
  boardPath: string
}

/** Next to this module, in src/ and in dist/. */
const FILES_DIR = new URL('page/', import.meta.url)
const files = [
  { path: '/', name: 'page.html', type: 'text/html; charset=utf-8' },
  { path: '/live.css', name: 'live.css', type: 'text/css; charset=utf-8' },
  { path: '/live.js', name: 'live.js', type: 'text/javascript; charset=utf-8' },
  { path: '/chart.js', name: 'chart.js', type: 'text/javascript; charset=utf-8' },
]

export const livePlugin: FastifyPluginAsync<LiveOptions> = async (app, options) => {
  for (const { path, name, type } of files) {
    const content = (await readFile(new URL(name, FILES_DIR), 'utf8'))
      .replaceAll('{{basePath}}', options.basePath)
      .replaceAll('{{boardPath}}', options.boardPath)
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
