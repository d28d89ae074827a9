/** The ops port of a gateway: metrics, the live page, runbooks, Bull Board and the audit. */
import { readFile } from 'node:fs/promises'
import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import { auditEventNames, auditOutcomes } from '../audit/store.js'
import type { GatewayConfig } from '../config.js'
import { operatorsPlugin } from './access.js'
import { operatorApiPlugin } from './api.js'
import { auditPlugin } from './audit.js'
import { BOARD_PATH, boardPlugin } from './board.js'
import type { OperatorDeps } from './change.js'
import { livePlugin } from './live.js'

export async function operatorPagesPlugin(app: FastifyInstance, deps: OperatorDeps): Promise<void> {
  const { config, metrics } = deps
  const { registry } = metrics
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
    // The TLS proxy sets HSTS. Plain HTTP on the loopback must stay reachable.
    strictTransportSecurity: false,
  })

  // For orchestrators: in a flood, a new connection to the public port may wait for seconds.
  app.get('/healthz', { logLevel: 'warn' }, async () => ({ status: 'ok' }))
  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
  await app.register(async (operators) => {
    await operators.register(operatorsPlugin, deps)
    await operators.register(livePlugin, deps)
    await operators.register(operatorApiPlugin, deps)
    await operators.register(filesPlugin, config)
    if (config.auditRetentionDays > 0) await operators.register(auditPlugin, deps)
    await operators.register(boardPlugin, deps)
  })
}

/** The URL without the base path of a proxy, which some proxies strip and some do not. */
export function withoutBase(url: string, basePath: string): string {
  if (basePath === '' || !url.startsWith(basePath)) return url
  const rest = url.slice(basePath.length)
  return rest.startsWith('/') ? rest : /^(\?|$)/.test(rest) ? `/${rest}` : url
}

const optionsOf = (names: readonly string[]) => names.map((name) => `<option>${name}</option>`).join('')
/** The files next to this module, in src/ and in dist/. */
const own = (name: string) => new URL(`page/${name}`, import.meta.url)
const files = [
  { path: '/', name: 'page.html', type: 'text/html' },
  { path: '/live.css', name: 'live.css', type: 'text/css' },
  { path: '/live.js', name: 'live.js', type: 'text/javascript' },
]
const filesOfAudit = [
  { path: '/audit', name: 'audit.html', type: 'text/html' },
  { path: '/audit.js', name: 'audit.js', type: 'text/javascript' },
]

/** The files of the live page and of the audit page, and the runbooks. */
async function filesPlugin(app: FastifyInstance, { opsBasePath, auditRetentionDays }: GatewayConfig): Promise<void> {
  const hasAudit = auditRetentionDays > 0
  for (const { path, name, type } of hasAudit ? [...files, ...filesOfAudit] : files) {
    const content = (await readFile(own(name), 'utf8'))
      .replaceAll('{{basePath}}', opsBasePath)
      .replaceAll('{{boardPath}}', BOARD_PATH)
      .replace('{{auditLink}}', hasAudit ? '<a href="audit">Audit</a>' : '')
      .replace('{{events}}', optionsOf(auditEventNames))
      .replace('{{outcomes}}', optionsOf(auditOutcomes))
    app.get(path, async (_request, reply) =>
      reply
        .type(`${type}; charset=utf-8`)
        .header('cache-control', path.startsWith('/audit') ? 'no-store' : 'no-cache')
        .send(content),
    )
  }
  let runbooks: Promise<string> | undefined
  app.get('/runbooks', async (_request, reply) => {
    runbooks ??= renderRunbooks(opsBasePath)
    return reply
      .type('text/html; charset=utf-8')
      .header('cache-control', 'no-cache')
      .send(await runbooks)
  })
}

/** The same relative path from src/, from dist/, and in the gateway's image. */
const alerts = new URL('../../../infra/grafana/ALERTS.md', import.meta.url)

/** A section for each alert. The parser is loaded for the first reader, so that a start is faster. */
async function renderRunbooks(basePath: string): Promise<string> {
  const { Marked } = await import('marked')
  const markdown = new Marked({
    renderer: {
      // Titles are anchors.
      heading({ tokens, depth, text }) {
        const id = text.toLowerCase().replaceAll(' ', '-')
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      // Other files of the repository are not here, so their links become plain text.
      link({ href, tokens }) {
        const words = this.parser.parseInline(tokens)
        return href.startsWith('#') ? `<a href="runbooks${href}">${words}</a>` : words
      },
    },
  })
  const runbooks = await markdown.parse(await readFile(alerts, 'utf8'))
  const page = (await readFile(own('runbooks.html'), 'utf8')).replaceAll('{{basePath}}', basePath)
  return page.replace('{{runbooks}}', () => runbooks)
}
