// Calls and time of each command, by Redis's own count, those inside scripts included.
import type { Redis } from 'ioredis'

export interface CommandTime {
  command: string
  calls: number
  us: number
}

/** Their time includes that of the commands they run. */
const SCRIPTS = ['eval', 'evalsha']
/** Commands that no script of ours or of BullMQ's runs. */
const OUTSIDE = ['bzpopmin', 'info', 'ping', 'hello', 'subscribe', 'unsubscribe']

/** Since Redis started. */
export async function commandTimes(redis: Redis): Promise<CommandTime[]> {
  const info = await redis.info('commandstats')
  return [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)].map(([, command = '', calls, us]) => ({
    command,
    calls: Number(calls),
    us: Number(us),
  }))
}

/**
 * The commands between two readings, the longest first, with the time of the scripts themselves as that of `Lua`: theirs without
 * that of the commands in them.
 */
export function between(before: readonly CommandTime[], after: readonly CommandTime[]): CommandTime[] {
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
