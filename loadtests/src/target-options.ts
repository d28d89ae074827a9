// The options of `pnpm load spike --target`.
import { positive, whole } from '@spillway/local/processes/command-line'
import { UserError } from '@spillway/local/processes/user-error'
import { SEED_PASSWORD, SEED_USERS } from '@spillway/prisma/seed'
import { DURATION_MAX_S, RATE_MAX, type Target } from '../target/spike.ts'

/** As the spike of the load tests that start a system of their own. */
const TARGET_DURATION_S = 10

export interface TargetOptions extends Target {
  beyondLoopback: boolean
}

export const targetHelp = `With --target
  --target url      the gateway: http://127.0.0.1:3000 is that of "pnpm start"
  --rate n          people a second, at most ${RATE_MAX} [five times what it is found to do]
  --duration s      seconds in which they come, at most ${DURATION_MAX_S} [${TARGET_DURATION_S}]; those with tickets are waited for
  --users n         how many accounts there are [${SEED_USERS}]
  --password p      their password ["${SEED_PASSWORD}"]
  --beyond-loopback lets the target be another machine than this one; only where you may do that`

type Name = 'target' | 'password' | 'users' | 'duration' | 'rate' | 'contender' | 'repeat' | 'json' | 'compare' | 'from'
type TargetValues = { [name in Name]?: string | undefined } & { 'beyond-loopback'?: boolean | undefined }

/** Throws a UserError for options that do not go with a target, or need one. */
export function targetOf(values: TargetValues, positionals: readonly string[]): TargetOptions | undefined {
  const { target: url, password, 'beyond-loopback': beyondLoopback, contender, repeat, json, compare, from } = values
  if (url === undefined) {
    if (password === undefined && beyondLoopback === undefined) return undefined
    throw new UserError('--password and --beyond-loopback need a --target: see "pnpm load --help".')
  }
  const others = [contender, repeat, json, compare, from].some((value) => value !== undefined)
  if (others || positionals.length !== 1 || positionals[0] !== 'spike') {
    throw new UserError(
      '--target is for "pnpm load spike" alone, without contenders and results: see "pnpm load --help".',
    )
  }
  return {
    url,
    beyondLoopback: beyondLoopback === true,
    users: whole('--users', values.users ?? String(SEED_USERS)),
    password: password ?? SEED_PASSWORD,
    durationS: atMost('--duration', values.duration ?? String(TARGET_DURATION_S), DURATION_MAX_S),
    rate: values.rate === undefined ? undefined : atMost('--rate', values.rate, RATE_MAX),
  }
}

function atMost(option: string, text: string, most: number): number {
  const value = positive(option, text)
  if (value <= most) return value
  throw new UserError(`${option} takes at most ${most} with a --target, not "${text}".`)
}
