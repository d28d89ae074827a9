/** OpenTelemetry set up: where spans go, which are worth sending, and how context travels. */
import { hostname } from 'node:os'
import {
  type Attributes,
  type Context,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
  trace,
} from '@opentelemetry/api'
import { TRACE_PARENT_HEADER, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { detectResources, envDetector, hostDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace-node'
import { StackContextManager } from '@opentelemetry/sdk-trace-web'
import { within } from '@spillway/client/within'
import type { Telemetry } from 'bullmq'
import { BullMQOtel } from 'bullmq-otel'
import type { Tracing } from './tracing.js'

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

/**
 * W3C trace context without `tracestate`, and no baggage: whoever calls the public port would otherwise store bytes of their choice in
 * Redis and in traces. A `traceparent` is of one form and length, or none.
 */
class TraceparentPropagator implements TextMapPropagator {
  readonly #traceContext = new W3CTraceContextPropagator()

  inject<Carrier>(context: Context, carrier: Carrier, setter: TextMapSetter<Carrier>): void {
    this.#traceContext.inject(context, carrier, {
      set: (to, key, value) => key === TRACE_PARENT_HEADER && setter.set(to, key, value),
    })
  }

  extract<Carrier>(context: Context, carrier: Carrier, getter: TextMapGetter<Carrier>): Context {
    return this.#traceContext.extract(context, carrier, {
      keys: () => this.fields(),
      get: (from, key) => (key === TRACE_PARENT_HEADER ? getter.get(from, key) : undefined),
    })
  }

  fields(): string[] {
    return [TRACE_PARENT_HEADER]
  }
}

/** A job's context stands in Redis, unsealed. One that cannot be read would keep BullMQ from doing the job: it begins a trace instead. */
function believingNoContext({ tracer, contextManager }: Telemetry): Telemetry {
  return {
    tracer,
    contextManager: {
      active: () => contextManager.active(),
      with: (context, work) => contextManager.with(context, work),
      getMetadata: (context) => contextManager.getMetadata(context),
      fromMetadata(active, metadata) {
        try {
          return contextManager.fromMetadata(active, metadata)
        } catch {
          return active
        }
      },
    },
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
    propagator: new TraceparentPropagator(),
  })
  const tracer = trace.getTracer(SPILLWAY_SCOPE)

  return {
    telemetry: believingNoContext(new BullMQOtel({ tracerName: BULLMQ_SCOPE })),
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
