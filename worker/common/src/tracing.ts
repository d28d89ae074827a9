/**
 * Tracing with OpenTelemetry: one trace across HTTP, queue and worker. Enabled by OTEL_EXPORTER_OTLP_ENDPOINT; without it the SDK is
 * not loaded.
 */
import type { Attributes } from '@opentelemetry/api'
import type { Telemetry } from 'bullmq'

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

/**
 * Starts tracing this process; undefined without an endpoint. Call it once. The SDK reads everything else (headers, sampling,
 * batches, the service's name) from the environment:
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export async function startTracing(options: { service: string; endpoint: string }): Promise<Tracing | undefined> {
  if (options.endpoint === '') return undefined
  const { startSdk } = await import('./tracing-sdk.js')
  return startSdk(options)
}
