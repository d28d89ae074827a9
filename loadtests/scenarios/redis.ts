// The work of one Redis server for a login, and so how many logins a second it could serve.
import { randomBytes } from 'node:crypto'
import { run } from '@spillway/infra/processes/run'
import { startProcess } from '@spillway/infra/rig'
import { deleteKeys } from '@spillway/infra/rig/namespace'
import { Redis } from 'ioredis'
import { compiled } from '../contenders/contender.ts'
import type { SpillwayRunning } from '../contenders/spillway.ts'
import { loginCaller, withCallers } from '../load/closed.ts'
import { processorTimeOf, timeOf } from '../measure/observe.ts'
import type { Measured } from '../src/results.ts'
import { ofPipeline, PIPELINE_SLOTS } from './measurements.ts'
import type { Scenario, Setting } from './scenario.ts'

const CALLERS = 64
/** Of the one core that Redis runs its commands on: with more, every command waits for others. */
const BUSY_AT_MOST = 0.7

export const redis: Scenario = {
  name: 'redis',
  title: 'What one Redis server does for a login',
  question:
    'What is Redis busy with when logins come as fast as they can, how many could one serve, and how many jobs does BullMQ alone do?',
  durationS: 4,
  settings: () => ({ callers: CALLERS, busyAtMost: BUSY_AT_MOST }),
  plan: (setting) =>
    ofPipeline(setting, async (running) => {
      const bare = () =>
        bareBullmq({
          redisUrl: setting.services.redisUrl,
          callers: CALLERS,
          slots: PIPELINE_SLOTS,
          forMs: (setting.durationS * 1_000) / 2,
        })
      const before = await bare()
      const { figures, ...rest } = await dissect(running, setting)
      const jobsPerSecond = (before + (await bare())) / 2
      const ofBullmqPercent = (100 * (figures.perSecond ?? 0)) / jobsPerSecond
      return { figures: { ...figures, jobsPerSecond, ofBullmqPercent }, ...rest }
    }),
}

async function dissect(running: SpillwayRunning, setting: Setting): Promise<Measured> {
  const asking = new Redis(setting.services.redisUrl)
  const loop = { urls: running.urls, callers: CALLERS, caller: loginCaller(setting.accounts, 'token') }
  try {
    return await withCallers(loop, async (countFor) => {
      const before = await commandTimes(asking)
      const { result, parts } = await processorTimeOf(running, setting.servers, () => countFor(setting.durationS))
      const commands = between(before, await commandTimes(asking))
      const logins = Math.max(result.tally.counts.ok, 1)
      const processorMs = timeOf(parts, 'redis') / logins
      const insideMs = commands.reduce((sum, { us }) => sum + us, 0) / 1_000 / logins
      return {
        figures: {
          perSecond: result.tally.counts.ok / result.seconds,
          ...(processorMs > 0 && {
            redisMsPerLogin: processorMs,
            redisServesPerSecond: (BUSY_AT_MOST * 1_000) / processorMs,
          }),
        },
        series: {
          commands: [
            ...(processorMs > 0 ? [{ command: 'network and protocol', us: (processorMs - insideMs) * 1_000 }] : []),
            ...commands.map(({ command, calls, us }) => ({ command, calls: calls / logins, us: us / logins })),
          ],
        },
      }
    })
  } finally {
    asking.disconnect()
  }
}

interface CommandTime {
  command: string
  calls: number
  us: number
}

/** Their time includes the commands that they run. */
const SCRIPTS = ['eval', 'evalsha']
/** Commands that no script of ours or of BullMQ's runs. */
const OUTSIDE = ['bzpopmin', 'info', 'ping', 'hello', 'subscribe', 'unsubscribe']

/** Since Redis started. */
async function commandTimes(redis: Redis): Promise<CommandTime[]> {
  const info = await redis.info('commandstats')
  return [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)].map(([, command = '', calls, us]) => ({
    command,
    calls: Number(calls),
    us: Number(us),
  }))
}

/**
 * The commands between two readings, the longest first, with the scripts' own time as `Lua`: without the commands in
 * them.
 */
function between(before: readonly CommandTime[], after: readonly CommandTime[]): CommandTime[] {
  const times = after.map(({ command, calls, us }) => {
    const start = before.find((other) => other.command === command)
    return { command, calls: calls - (start?.calls ?? 0), us: us - (start?.us ?? 0) }
  })
  const sum = (some: readonly CommandTime[], of: 'calls' | 'us') => some.reduce((total, time) => total + time[of], 0)
  const scripts = times.filter(({ command }) => SCRIPTS.includes(command))
  const commands = times.filter(({ command }) => !SCRIPTS.includes(command))
  const inside = commands.filter(({ command }) => !OUTSIDE.includes(command))
  const lua = { command: 'Lua', calls: sum(scripts, 'calls'), us: sum(scripts, 'us') - sum(inside, 'us') }
  return [lua, ...commands].filter(({ calls }) => calls > 0).sort((a, b) => b.us - a.us)
}

/** Jobs that do nothing, by BullMQ with nothing around it: as many callers that wait for theirs, and slots, as the pipeline has. */
interface BareBullmq {
  redisUrl: string
  callers: number
  slots: number
  forMs: number
}

/** Jobs a second, of one process that adds them and one that does them, on all cores. */
async function bareBullmq({ redisUrl, callers, slots, forMs }: BareBullmq): Promise<number> {
  const prefix = `{bare-${randomBytes(6).toString('hex')}}`
  const program = compiled('measure/bare-bullmq-program')
  const worker = startProcess({ entry: program, args: ['worker', redisUrl, prefix, String(slots)] })
  try {
    const args = [program, 'producer', redisUrl, prefix, String(callers), String(forMs)]
    return Number(await run(process.execPath, args))
  } finally {
    await worker.close()
    await deleteKeys(redisUrl, prefix)
  }
}
