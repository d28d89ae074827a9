/**
 * Tracing with OpenTelemetry: one trace across HTTP, queue and worker. Enabled by OTEL_EXPORTER_OTLP_ENDPOINT; without it the SDK is
 * not loaded.
 */
import type { Tracing } from './tracing-sdk.js'

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
