/**
 * Tracing with OpenTelemetry: one trace across HTTP, queue and worker. Import this only if
 * there is a collector: the SDK takes long to load. It reads other settings from the environment:
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
import { hostname } from 'node:os'
import {
  type Attributes,
  type Context,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { TRACE_PARENT_HEADER, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { detectResources, envDetector, hostDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace-node'
import { StackContextManager } from '@opentelemetry/sdk-trace-web'
import type { Telemetry } from 'bullmq'
import { BullMQOtel } from 'bullmq-otel'
import { type Logger, ThrottledWarning } from './throttled-warning.js'
import { within } from './within.js'

const BULLMQ_SCOPE = 'bullmq'
const SPILLWAY_SCOPE = 'spillway'

/** Limit of the last export. The SDK's own, 30 s, may exceed a pod's grace period. */
const SHUTDOWN_TIMEOUT_MS = 2_000

/** Drops BullMQ's internal spans: its periodic checks for stalled jobs would each be a trace. */
class FilteringSpanProcessor extends BatchSpanProcessor {
  override onEnd(span: ReadableSpan): void {
    if (span.instrumentationScope.name === BULLMQ_SCOPE && span.kind === SpanKind.INTERNAL) return
    super.onEnd(span)
  }
}

/**
 * Propagates only `traceparent`, whose format and length are fixed. With `tracestate` and baggage
 * callers could store arbitrary bytes in Redis and in traces.
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

/** Logs failed exports, which the SDK does not report. */
export class LoggingExporter extends OTLPTraceExporter {
  readonly #failed: ThrottledWarning

  constructor(collector: string, log: Logger) {
    super({ url: `${collector.replace(/\/$/, '')}/v1/traces` })
    this.#failed = new ThrottledWarning(log, 'traces could not be exported')
  }

  override export(...[spans, done]: Parameters<OTLPTraceExporter['export']>): void {
    super.export(spans, (result) => {
      if (result.error === undefined) this.#failed.recovered()
      else this.#failed.warn(result.error, { spans: spans.length })
      done(result)
    })
  }
}

export class Tracing {
  readonly #provider: NodeTracerProvider
  readonly #tracer: Tracer
  /** BullMQ's hook: spans for adding and processing a job, and the W3C context it carries. */
  readonly telemetry: Telemetry

  constructor({ service, collector, log }: { service: string; collector: string; log: Logger }) {
    this.#provider = new NodeTracerProvider({
      // Resource attributes of the environment take precedence.
      resource: resourceFromAttributes({
        'service.name': service,
        'service.instance.id': `${hostname()}:${process.pid}`,
      }).merge(detectResources({ detectors: [hostDetector, envDetector] })),
      spanProcessors: [new FilteringSpanProcessor(new LoggingExporter(collector, log))],
    })
    this.#provider.register({
      // Spans are always started before the first await. Following a context through promises, as
      // AsyncLocalStorage does, slows every promise of the process: 0.5 ms a login on Node 20.
      contextManager: new StackContextManager(),
      propagator: new TraceparentPropagator(),
    })
    this.#tracer = trace.getTracer(SPILLWAY_SCOPE)
    this.telemetry = new BullMQOtel({ tracerName: BULLMQ_SCOPE })
  }

  /** Runs work in a child span, active until the first await of the work. */
  inSpan<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
    return this.#tracer.startActiveSpan(name, { attributes }, async (span) => {
      try {
        return await work()
      } catch (error) {
        // Without the error's message: a message of a library may contain secrets.
        span.setStatus({ code: SpanStatusCode.ERROR })
        throw error
      } finally {
        span.end()
      }
    })
  }

  /** The id of the active trace, for log lines. */
  traceId(): string | undefined {
    return trace.getActiveSpan()?.spanContext().traceId
  }

  /** Exports pending spans, for at most 2 s. Never rejects: lost spans are not a failure. */
  async close(): Promise<void> {
    await within(SHUTDOWN_TIMEOUT_MS, this.#provider.shutdown()).catch(() => undefined)
  }
}
