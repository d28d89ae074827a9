/** The ops port of a gateway: metrics, the live page, runbooks, Bull Board and the audit. */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import helmet from '@fastify/helmet'
import type { QueueReporter } from '@spillway/queue/jobs/report'
import type { Keyring, PasswordClient, RedisConnection, RedisWatch } from '@spillway/queue/queue-client'
import type { FastifyInstance } from 'fastify'
import { auditEventNames, auditOutcomes } from '../audit/store.js'
import type { GatewayConfig } from '../config.js'
import type { CountingRedis } from '../plugins/counts.js'
import type { LoadShedder } from '../plugins/load-shedding/load-shedder.js'
import type { GatewayMetrics } from '../plugins/metrics.js'
import { operatorsPlugin } from './access.js'
import { operatorApiPlugin } from './api.js'
import { auditPlugin } from './audit.js'
import { BOARD_PATH, boardPlugin } from './board.js'
import type { OperatorDeps } from './change.js'
import { livePlugin } from './live.js'
import { type NamedOperators, SharedLogins } from './named.js'

export interface OperatorPagesOptions extends OperatorDeps {
  config: GatewayConfig
  metrics: GatewayMetrics
  passwords: PasswordClient
  reporter: QueueReporter
  shedder: Pick<LoadShedder, 'delayMs'>
  namedOperators: NamedOperators | undefined
  /** For what operators look at: long reads must not delay logins. */
  operatorsRedis: readonly { address: string; connection: RedisConnection }[]
  watch: RedisWatch
  keyring: Keyring
  countingRedis: readonly CountingRedis[]
}

export async function operatorPagesPlugin(app: FastifyInstance, options: OperatorPagesOptions): Promise<void> {
  const { config, metrics, passwords, database, audit, operatorsRedis, watch } = options
  const { registry } = metrics
  const shared = new SharedLogins(options.countingRedis, options.keyring, config.QUEUE_PREFIX)
  await app.register(helmet, {
    // Bull Board needs inline styles. Its external fonts stay blocked; it works without them.
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'self'"],
        styleSrc: ["'self'", "'unsafe-inline'"],
        imgSrc: ["'self'", 'data:'],
        frameAncestors: ["'none'"],
        baseUri: ["'self'"],
        formAction: ["'self'"],
      },
    },
    // HSTS is the TLS proxy's to set; plain HTTP on the loopback must stay reachable.
    strictTransportSecurity: false,
  })

  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
  await app.register(async (operators) => {
    await operators.register(operatorsPlugin, {
      ...{ config, passwords, shared, named: options.namedOperators },
      onFailure: () => metrics.operatorFailures.inc(),
    })
    await operators.register(livePlugin, options)
    await operators.register(operatorApiPlugin, { ...options, queuePrefix: config.QUEUE_PREFIX })
    await operators.register(filesPlugin, config)
    if (config.AUDIT_RETENTION_DAYS > 0) await operators.register(auditPlugin, { config, database, passwords })
    await operators.register(boardPlugin, { config, audit, redis: operatorsRedis, watch })
  })
}

/** The URL without the path at which a proxy has the pages: some proxies strip it, some do not. */
export function withoutBase(url: string, basePath: string): string {
  if (basePath === '' || !url.startsWith(basePath)) return url
  const rest = url.slice(basePath.length)
  return rest.startsWith('/') ? rest : /^(\?|$)/.test(rest) ? `/${rest}` : url
}

const optionsOf = (names: readonly string[]) => names.map((name) => `<option>${name}</option>`).join('')
const { resolve } = createRequire(import.meta.url)
/** Next to this module, in src/ and in dist/. */
const own = (name: string) => new URL(`page/${name}`, import.meta.url)
const types = { css: 'text/css', html: 'text/html', js: 'text/javascript' }
const files: { path: string; file: URL | string; type: keyof typeof types; ofAudit?: true }[] = [
  { path: '/', file: own('page.html'), type: 'html' },
  { path: '/live.css', file: own('live.css'), type: 'css' },
  { path: '/live.js', file: own('live.js'), type: 'js' },
  { path: '/uplot.js', file: resolve('uplot/dist/uPlot.esm.js'), type: 'js' },
  { path: '/uplot.css', file: resolve('uplot/dist/uPlot.min.css'), type: 'css' },
  { path: '/audit', file: own('audit.html'), type: 'html', ofAudit: true },
  { path: '/audit.js', file: own('audit.js'), type: 'js', ofAudit: true },
]

/** The files of the live page and of the audit's, and the runbooks. */
async function filesPlugin(
  app: FastifyInstance,
  { OPS_BASE_PATH, AUDIT_RETENTION_DAYS }: GatewayConfig,
): Promise<void> {
  const hasAudit = AUDIT_RETENTION_DAYS > 0
  for (const { path, file, type, ofAudit = false } of files) {
    if (ofAudit && !hasAudit) continue
    const content = (await readFile(file, 'utf8'))
      .replaceAll('{{basePath}}', OPS_BASE_PATH)
      .replaceAll('{{boardPath}}', BOARD_PATH)
      .replace('{{auditLink}}', hasAudit ? '<a href="audit">Audit</a>' : '')
      .replace('{{events}}', optionsOf(auditEventNames))
      .replace('{{outcomes}}', optionsOf(auditOutcomes))
    app.get(path, async (_request, reply) =>
      reply
        .type(`${types[type]}; charset=utf-8`)
        .header('cache-control', ofAudit ? 'no-store' : 'no-cache')
        .send(content),
    )
  }
  let runbooks: Promise<string> | undefined
  app.get('/runbooks', async (_request, reply) => {
    runbooks ??= renderRunbooks(OPS_BASE_PATH)
    return reply
      .type('text/html; charset=utf-8')
      .header('cache-control', 'no-cache')
      .send(await runbooks)
  })
}

/** Of infra/grafana: the same path from src/ and from dist/, and in the gateway's image. */
const alerts = new URL('../../../infra/grafana/ALERTS.md', import.meta.url)

/** A section for each alert. Loads the parser with the first reader: a start without one is faster. */
async function renderRunbooks(basePath: string): Promise<string> {
  const { Marked } = await import('marked')
  const markdown = new Marked({
    renderer: {
      // Titles are anchors.
      heading({ tokens, depth, text }) {
        const id = text.toLowerCase().replaceAll(' ', '-')
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      // Other files of the repository are not here: their links are words alone.
      link({ href, tokens }) {
        const words = this.parser.parseInline(tokens)
        return href.startsWith('#') ? `<a href="runbooks${href}">${words}</a>` : words
      },
    },
  })
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Runbooks · Spillway</title>
    <base href="${basePath}/" />
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="live.css" />
    <style>
      h2 { margin-top: 2rem; font: 600 1.3rem system-ui; color: inherit }
      p, li { display: revert; margin-block: 0.6rem; font: inherit; color: inherit }
      strong { color: inherit }
      :is(th, td):nth-child(n) { text-align: left; vertical-align: top; white-space: normal }
      pre { white-space: pre-wrap }
    </style>
  </head>
  <body>
    <header><nav><a href="${basePath}/">Live</a></nav></header>
    <main class="card" tabindex="0">${await markdown.parse(await readFile(alerts, 'utf8'))}</main>
  </body>
</html>`
}
