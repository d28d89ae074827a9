// The log on its way out of a process.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const log = fileURLToPath(new URL('../dist/process/log.js', import.meta.url))

test('a line that comes while earlier ones are still being written is written after them, without any other', async () => {
  const moreThanAPipeHolds = 2 ** 21
  const program = `
    import { createLogger } from ${JSON.stringify(log)}
    const log = createLogger({ service: 'test', level: 'info' })
    log.info('x'.repeat(${moreThanAPipeHolds}))
    setTimeout(() => log.info('the last line'), 200)
    setInterval(() => undefined, 1_000)
  `
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 30_000,
    killSignal: 'SIGKILL',
  })
  try {
    // Nobody reads, so that the first write cannot end before the last line's was due.
    await sleep(1_000)
    let written = ''
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      written += chunk
      if (written.endsWith('"msg":"the last line"}\n')) break
    }
    assert.ok(written.endsWith('"msg":"the last line"}\n'))
    assert.ok(written.length > moreThanAPipeHolds)
  } finally {
    child.kill('SIGKILL')
  }
})
