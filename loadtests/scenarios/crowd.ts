// A crowd of callers, each of whom asks again when it is answered, and what that does to everyone.
import type { Running } from '../contenders/contender.ts'
import { withCallers } from '../load/closed.ts'
import type { Caller } from '../load/requests.ts'
import { observe } from '../measure/observe.ts'
import type { Measured } from '../src/results.ts'
import { loginFigures } from './figures.ts'
import type { Setting } from './scenario.ts'

export function crowd(
  running: Running,
  { servers }: Setting,
  caller: Caller,
  connections: number,
  seconds: number,
): Promise<Measured> {
  return withCallers({ urls: [running.url], connections, caller }, async ({ countFor }) =>
    loginFigures(await observe(running, servers, () => countFor(seconds))),
  )
}
