// Where traces go, and what is told when they do not arrive.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { tracesUrl } from '@spillway/common/settings'
import { LoggingExporter } from '@spillway/common/tracing'
import { listening } from '@spillway/infra/processes/port'
import { newSealKey } from '@spillway/infra/start/secrets'
import { type TestContext, test } from 'vitest'
import { readWorkerConfig } from '../../src/config.ts'
import { keepingLog } from '../parts.ts'

const SPILLWAY_SEAL_KEYS = newSealKey()
const base = 'http://collector:4318/'
test.each([
  ['nowhere by default', {}, undefined],
  ['to the path of OTLP', { OTEL_EXPORTER_OTLP_ENDPOINT: base }, 'http://collector:4318/v1/traces'],
])('traces go %s', (_where, env: NodeJS.ProcessEnv, url) => {
  assert.equal(tracesUrl(readWorkerConfig({ SPILLWAY_SEAL_KEYS, ...env })), url)
})

async function exported(exporter: LoggingExporter): Promise<number> {
  return await new Promise((resolve) => exporter.export([], ({ code }) => resolve(code)))
}

test('exports that fail are one warning', async (t: TestContext) => {
  const collector = createServer((_request, response) => response.writeHead(400).end())
  const port = await listening(collector)
  t.onTestFinished(() => void collector.close())
  const { lines, log } = keepingLog()
  const exporter = new LoggingExporter(`http://127.0.0.1:${port}/v1/traces`, log)
  for (let n = 0; n < 3; n += 1) assert.equal(await exported(exporter), 1)
  await exporter.shutdown()
  assert.deepEqual(
    lines.map(({ level, msg }) => [level, msg]),
    [['warn', 'traces could not be exported']],
  )
})

test('the port of gRPC is told to be that', () => {
  const { lines, log } = keepingLog()
  new LoggingExporter('http://collector:4317/v1/traces', log)
  assert.match(String(lines[0]?.msg), /^traces go to port 4317, .*port 4318$/)
})
