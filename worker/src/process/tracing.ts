/**
 * Traces: OpenTelemetry across HTTP, queue and worker as one trace, on when OTEL_EXPORTER_OTLP_ENDPOINT is set. When it is
 * not, the SDK is not even loaded.
 */
import type { Attributes } from '@opentelemetry/api'
import type { Telemetry } from 'bullmq'

export interface Tracing {
  /** BullMQ's hook: spans for adding and processing a job, and the W3C context that travels with it. */
  telemetry: Telemetry
  /** Runs work in a span of its own, below the active one. A span is active until the work it was begun for first waits. */
  inSpan<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>
  /** The active trace, for log lines. */
  traceId(): string | undefined
  /** Sends what is left, for two seconds at most, and gives up on the rest. Never rejects. */
  close(): Promise<void>
}

/**
 * Starts tracing this process, once for all, when there is an endpoint to send to; undefined when it is empty. Everything
 * else (headers, sampling, batches, the service's name) the SDK reads from the environment as its specification says:
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export async function startTracing(options: { service: string; endpoint: string }): Promise<Tracing | undefined> {
  if (options.endpoint === '') return undefined
  const { startSdk } = await import('./tracing-sdk.js')
  return startSdk(options)
}
