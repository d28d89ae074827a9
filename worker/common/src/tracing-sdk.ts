/** The OpenTelemetry SDK's set-up: exporter, filtering of spans, and context propagation. */
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
import type { Telemetry } from 'bullmq'
import { BullMQOtel } from 'bullmq-otel'
import { within } from './within.js'

const BULLMQ_SCOPE = 'bullmq'
const SPILLWAY_SCOPE = 'spillway'

/** The time limit of the last export. The SDK's own limit, 30 s, may exceed a pod's termination grace period. */
const SHUTDOWN_TIMEOUT_MS = 2_000

/** Drops BullMQ's internal spans: its periodic checks for stalled jobs would each be a trace. */
class FilteringSpanProcessor extends BatchSpanProcessor {
  override onEnd(span: ReadableSpan): void {
    if (span.instrumentationScope.name === BULLMQ_SCOPE && span.kind === SpanKind.INTERNAL) return
    super.onEnd(span)
  }
}

/**
 * Propagates `traceparent` alone, neither `tracestate` nor baggage: callers of the public port could otherwise store arbitrary bytes
 * in Redis and in traces. A `traceparent` has a fixed format and length.
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

/** A job's trace context is in Redis, unsealed. BullMQ could not process a job with an invalid one: such a job gets a new trace. */
function toleratingInvalidContext({ tracer, contextManager }: Telemetry): Telemetry {
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

export interface Tracing {
  /** BullMQ's hook: spans for adding and processing a job, and the W3C context that travels with it. */
  telemetry: Telemetry
  /** Runs work in a child span of the active span. The span is active only until the first await of the work. */
  inSpan<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>
  /** The id of the active trace, for log lines. */
  traceId(): string | undefined
  /** Exports pending spans, for at most two seconds. Never rejects. */
  close(): Promise<void>
}

export function startSdk({ service, endpoint }: { service: string; endpoint: string }): Tracing {
  const url = `${endpoint.replace(/\/$/, '')}/v1/traces`
  const provider = new NodeTracerProvider({
    // Resource attributes of the environment take precedence.
    resource: resourceFromAttributes({
      'service.name': service,
      'service.instance.id': `${hostname()}:${process.pid}`,
    }).merge(detectResources({ detectors: [hostDetector, envDetector] })),
    spanProcessors: [new FilteringSpanProcessor(new OTLPTraceExporter({ url }))],
  })
  provider.register({
    // Spans are always started before the first await. Following a context through promises, as AsyncLocalStorage does, slows every
    // promise of the process: half a millisecond a login on Node 20.
    contextManager: new StackContextManager(),
    propagator: new TraceparentPropagator(),
  })
  const tracer = trace.getTracer(SPILLWAY_SCOPE)

  return {
    telemetry: toleratingInvalidContext(new BullMQOtel({ tracerName: BULLMQ_SCOPE })),
    inSpan: (name: string, attributes: Attributes, work) =>
      tracer.startActiveSpan(name, { attributes }, async (span) => {
        try {
          return await work()
        } catch (error) {
          // Without the error's message: a library's may contain secrets.
          span.setStatus({ code: SpanStatusCode.ERROR })
          throw error
        } finally {
          span.end()
        }
      }),
    traceId: () => trace.getActiveSpan()?.spanContext().traceId,
    // Rejects when the last spans could not be exported. Losing them is not a failure of the process.
    close: () => within(SHUTDOWN_TIMEOUT_MS, provider.shutdown()).catch(() => undefined),
  }
}
