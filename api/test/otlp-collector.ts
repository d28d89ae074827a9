// A collector for OTLP over HTTP with JSON: takes what is sent and keeps the spans.
import { createServer } from 'node:http'
import { listening } from '@spillway/infra/processes/port'

export interface CollectedSpan {
  service: string
  scope: string
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number
  attributes: Record<string, unknown>
}

export interface Collector {
  url: string
  spans: CollectedSpan[]
  /** All that was received, as it came. */
  received(): string
  close(): Promise<void>
}

interface Attribute {
  key: string
  value: Record<string, unknown>
}

interface Export {
  resourceSpans: {
    resource: { attributes: Attribute[] }
    scopeSpans: {
      scope: { name: string }
      spans: (Omit<CollectedSpan, 'attributes'> & { attributes: Attribute[] })[]
    }[]
  }[]
}

export async function openCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = []
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    bodies.push(body)
    if (request.url === '/v1/traces') spans.push(...readSpans(JSON.parse(body)))
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  return {
    url: `http://127.0.0.1:${await listening(server)}`,
    spans,
    received: () => bodies.join('\n'),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function readSpans({ resourceSpans }: Export): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) =>
      spans.map((span) => ({
        ...span,
        attributes: toRecord(span.attributes),
        service: String(toRecord(resource.attributes)['service.name']),
        scope: scope.name,
      })),
    ),
  )
}

function toRecord(attributes: Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}
