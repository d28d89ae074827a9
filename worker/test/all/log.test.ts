// The log on its way out of a process.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'vitest'

const log = fileURLToPath(new URL('../../common/dist/log.js', import.meta.url))

test('of an error the type, message, code, stack and causes are logged; of anything else that was thrown, nothing', async () => {
  const program = `
    import { createLogger } from ${JSON.stringify(log)}
    const log = createLogger({ service: 'test', level: 'info' })
    const cause = { secret: 'hush' }
    const error = Object.assign(new TypeError('told', { cause }), { code: 'E_TOLD', command: { args: ['hush'] } })
    for (const err of [error, 'hush', { message: 'hush' }, ['hush']]) log.error({ err }, 'failed')
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
  assert.doesNotMatch(stdout, /hush/)
  const lines = stdout.trimEnd().split('\n')
  const [first, ...others] = lines.map((line): { err: object } => JSON.parse(line)).map(({ err }) => err)
  const nothing = (type: string) => ({ type, message: 'a value that is no error was thrown' })
  assert.ok(first !== undefined && 'stack' in first)
  const { stack: _, ...told } = first
  assert.deepEqual(told, { type: 'TypeError', message: 'told', code: 'E_TOLD', cause: nothing('object') })
  assert.deepEqual(others, ['string', 'object', 'object'].map(nothing))
})

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
