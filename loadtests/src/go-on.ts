// Goes on with a run that was interrupted: what it has measured is not measured again.
import { isDeepStrictEqual } from 'node:util'
import { UserError } from '@spillway/local/processes/command-line'
import type { Results, Run, ScenarioResult } from './results.ts'

/** Settings that are measured anew at each start. */
const MEASURED = ['bcryptBareMs', 'argon2idBareMs']

/**
 * The results of this run, begun where the earlier one was.
 *
 * @throws {@link UserError} when machine or settings differ, so that its figures cannot be compared with those to come
 */
export function goOnWith(earlier: Results, now: Results): Results {
  for (const [what, before, after] of [
    ['machine', earlier.machine, now.machine],
    ['settings', comparable(earlier), comparable(now)],
  ] as const) {
    if (!isDeepStrictEqual(before, after))
      throw new UserError(
        `A run goes on with the same ${what}: ${JSON.stringify(before)}, not ${JSON.stringify(after)}.`,
      )
  }
  const commits = [...new Set([...earlier.commit.split(', '), now.commit])].join(', ')
  return { ...now, startedAt: earlier.startedAt, commit: commits }
}

/** What was measured of a scenario; failures are measured again. */
export function measuredBefore(begun: readonly ScenarioResult[], { name }: ScenarioResult) {
  const runs = begun.find((scenario) => scenario.name === name)?.runs.filter(({ failure }) => failure === undefined)
  return ({ contender, variant, repeat }: Pick<Run, 'contender' | 'variant' | 'repeat'>): Run | undefined =>
    runs?.find((run) => run.contender === contender && run.variant === variant && run.repeat === repeat)
}

function comparable({ settings }: Results) {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !MEASURED.includes(name)))
}
