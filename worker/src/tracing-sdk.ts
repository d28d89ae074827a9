/** OpenTelemetry set up: where spans go, which are worth sending, and how context travels. */
import { hostname } from 'node:os'
import { type Attributes, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { detectResources, envDetector, hostDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace-node'
import { StackContextManager } from '@opentelemetry/sdk-trace-web'
import { BullMQOtel } from 'bullmq-otel'
import type { Tracing } from './tracing.js'
import { within } from './within.js'

const BULLMQ_SCOPE = 'bullmq'
const SPILLWAY_SCOPE = 'spillway'

/** How long a process that ends tries to send its last spans. The SDK's own limit, 30 s, is more than a pod may be left. */
const FAREWELL_MS = 2_000

/** BullMQ's housekeeping, such as the check for stalled jobs each second, would be traces of their own that tell nothing. */
class WorthSending extends BatchSpanProcessor {
  override onEnd(span: ReadableSpan): void {
    if (span.instrumentationScope.name === BULLMQ_SCOPE && span.kind === SpanKind.INTERNAL) return
    super.onEnd(span)
  }
}

export function startSdk({ service, endpoint }: { service: string; endpoint: string }): Tracing {
  const url = `${endpoint.replace(/\/$/, '')}/v1/traces`
  const provider = new NodeTracerProvider({
    // What the environment says counts more.
    resource: resourceFromAttributes({
      'service.name': service,
      'service.instance.id': `${hostname()}:${process.pid}`,
    }).merge(detectResources({ detectors: [hostDetector, envDetector] })),
    spanProcessors: [new WorthSending(new OTLPTraceExporter({ url }))],
  })
  provider.register({
    // Whatever begins a span does so at once, before it waits for anything. To follow a context through every promise, as
    // AsyncLocalStorage does, costs all promises of the process: half a millisecond a login on Node 20.
    contextManager: new StackContextManager(),
    // No baggage: whoever calls the public port would otherwise store bytes of their choice in Redis.
    propagator: new W3CTraceContextPropagator(),
  })
  const tracer = trace.getTracer(SPILLWAY_SCOPE)

  return {
    telemetry: new BullMQOtel({ tracerName: BULLMQ_SCOPE }),
    inSpan: (name: string, attributes: Attributes, work) =>
      tracer.startActiveSpan(name, { attributes }, async (span) => {
        try {
          return await work()
        } catch (error) {
          // Without its message, which may come from a library and hold anything.
          span.setStatus({ code: SpanStatusCode.ERROR })
          throw error
        } finally {
          span.end()
        }
      }),
    traceId: () => trace.getActiveSpan()?.spanContext().traceId,
    // It rejects when the last spans could not be sent: they are lost, and that is no reason to end as if something had failed.
    close: () => within(FAREWELL_MS, provider.shutdown()).catch(() => undefined),
  }
}
