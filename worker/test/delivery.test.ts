// What a verdict costs on its way to Redis.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@spillway/local/testing'
import { verdictKey } from '../src/protocol/reply.ts'
import { answerOf, readyClient, startedWorker } from './parts.ts'
import { spaceFor } from './space.ts'

test('a verdict crosses to Redis once, and how it is to be stored once for each connection', async (t) => {
  const space = spaceFor(t)
  const { redis, prefix } = space
  const client = await readyClient(space)
  await startedWorker(space)
  const monitor = await redis.monitor()
  space.closing(async () => monitor.disconnect())
  const sent: string[][] = []
  monitor.on('monitor', (_time, command: string[], source: string) => {
    if (source !== 'lua' && command.some((argument) => argument.startsWith(verdictKey(prefix, '')))) sent.push(command)
  })
  const commands = []
  for (let n = 0; n < 2; n += 1) {
    const pending = await client.submit('hash', { password: 'x' })
    assert.ok(await answerOf(pending))
    const key = verdictKey(prefix, pending.job.id)
    const sealed = (await redis.get(key)) ?? assert.fail('no verdict is stored')
    const command = await until(() => sent.find(([name, ...rest]) => name !== 'get' && rest.includes(key)))
    assert.equal(command.filter((argument) => argument.includes(sealed)).length, 1)
    commands.push(command[0])
  }
  assert.deepEqual(commands, ['eval', 'evalsha'])
})
