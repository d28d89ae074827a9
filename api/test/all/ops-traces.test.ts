// A login is one trace, from the caller's span through HTTP and the queue to the hashing.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { asIs, type Credentials } from '../client.ts'
import { type CollectedSpan, openCollector } from '../otlp-collector.ts'
import { openSystem } from '../system.ts'

const collector = await openCollector()
afterAll(() => collector.close())
const system = await openSystem()
// Spans are sent within a tenth of a second instead of five.
const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100' }
// The specification of OTLP allows a slash at the end.
const worker = await system.worker({ ...env, OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/` })
const gateway = await system.gatewayProcess(env)

/** Logs in until that is answered at once: the trace of a login with a ticket is another one. */
async function traced(credentials: Credentials, status: number) {
  return await until(async () => {
    const [traceId, callerSpanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')]
    const traceparent = `00-${traceId}-${callerSpanId}-01`
    const headers = { traceparent, tracestate: 'vendor=kept-by-nobody', baggage: 'note=kept-by-nobody' }
    const answer = await gateway.api.login(credentials, { headers, ...asIs })
    return answer.status === status ? { traceId, callerSpanId } : undefined
  })
}

test('a login is one trace: the caller, HTTP, adding the job, processing it, hashing', async () => {
  const credentials = await gateway.api.newAccount()
  const { traceId, callerSpanId } = await traced(credentials, 200)

  const trace = await until(() => {
    const spans = collector.spans.filter((span) => span.traceId === traceId)
    return spans.length >= 4 ? spans : undefined
  })
  const tree = trace.map(({ service, name, kind, spanId, parentSpanId }) => ({
    service,
    name,
    kind,
    parent: trace.find((other) => other.spanId === parentSpanId)?.name ?? parentSpanId,
    spanId,
  }))
  const shown = tree.map(({ spanId: _, ...span }) => span).sort((a, b) => a.kind - b.kind)
  assert.deepEqual(shown, [
    { service: 'spillway-worker', name: 'verify', kind: 1, parent: 'process passwords' },
    { service: 'spillway-gateway', name: 'POST /v1/login', kind: 2, parent: callerSpanId },
    { service: 'spillway-gateway', name: 'add passwords.verify', kind: 4, parent: 'POST /v1/login' },
    { service: 'spillway-worker', name: 'process passwords', kind: 5, parent: 'add passwords.verify' },
  ])

  const request = trace.find(({ name }) => name === 'POST /v1/login')
  assert.equal(Number(request?.attributes['http.response.status_code']), 200)
  const jobId = request?.attributes['messaging.message.id']
  assert.equal(attributeOf(trace, 'process passwords', 'bullmq.job.id'), jobId)

  for (const process of [gateway, worker]) {
    await process.waitForLog((line) => line.jobId === jobId && line.traceId === traceId)
  }
  assert.ok(!collector.received().includes(credentials.password), 'the password was sent to the collector')
  assert.ok(!collector.received().includes('kept-by-nobody'), 'tracestate or baggage of the public port was passed on')
  const { tm } = JSON.parse((await system.redis.hget(jobKey(String(jobId)), 'opts')) ?? '')
  const { traceparent, ...others } = JSON.parse(tm)
  assert.match(traceparent, new RegExp(`^00-${traceId}-[\\da-f]{16}-01$`))
  assert.deepEqual(others, {})
})

test('the trace of a refusal says why, and housekeeping makes no traces', async () => {
  const credentials = await gateway.api.newAccount()
  const { traceId } = await traced({ ...credentials, password: 'another passphrase' }, 401)
  const spans = await until(() => {
    const found = collector.spans.filter((span) => span.traceId === traceId)
    return found.length >= 4 ? found : undefined
  })
  assert.equal(attributeOf(spans, 'POST /v1/login', 'error.type'), 'invalid_credentials')
  const kinds = new Set(collector.spans.map(({ scope, kind }) => `${scope} ${kind}`))
  assert.deepEqual([...kinds].sort(), ['bullmq 4', 'bullmq 5', 'spillway 1', 'spillway 2'])
})

test('without a collector the SDK of OpenTelemetry is not even loaded', async () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url))
  const script = (entry: string) => `
    await import(${JSON.stringify(`${root}${entry}`)})
    const { createRequire } = await import('node:module')
    console.log(Object.keys(createRequire('file:///').cache).filter((file) => /node_modules.(@opentelemetry.(sdk|core|exporter|otlp)|bullmq-otel)/.test(file)).length)`
  for (const entry of ['api/dist/start.js', 'worker/dist/start.js']) {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script(entry)])
    assert.equal(stdout.trim(), '0', entry)
  }
})

function jobKey(id: string): string {
  return `${system.namespace.queuePrefix}:passwords:${id}`
}

function attributeOf(spans: CollectedSpan[], name: string, attribute: string): unknown {
  return spans.find((span) => span.name === name)?.attributes[attribute]
}
