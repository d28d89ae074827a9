// Traces that do not arrive.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { LoggingExporter } from '@spillway/common/tracing'
import { listening } from '@spillway/infra/processes/port'
import { type TestContext, test } from 'vitest'
import { keepingLog } from '../parts.ts'

async function exported(exporter: LoggingExporter): Promise<number> {
  return await new Promise((resolve) => exporter.export([], ({ code }) => resolve(code)))
}

test('exports that fail are one warning', async (t: TestContext) => {
  const paths: (string | undefined)[] = []
  const collector = createServer(({ url }, response) => {
    paths.push(url)
    response.writeHead(400).end()
  })
  const port = await listening(collector)
  t.onTestFinished(() => void collector.close())
  const { lines, log } = keepingLog()
  const exporter = new LoggingExporter(`http://127.0.0.1:${port}/`, log)
  for (let n = 0; n < 3; n += 1) assert.equal(await exported(exporter), 1)
  await exporter.shutdown()
  assert.deepEqual(new Set(paths), new Set(['/v1/traces']))
  assert.deepEqual(
    lines.map(({ level, msg }) => [level, msg]),
    [['warn', 'traces could not be exported']],
  )
})
