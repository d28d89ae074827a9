// Five thousand users at once: who still gets an answer, and how many a second.

import { TIMEOUT_MS } from '@spillway/local/testing/api-client'
import type { Running } from '../contenders/contender.ts'
import { costOf } from '../contenders/hashing.ts'
import type { Credential } from '../load/accounts.ts'
import { patientLoad } from '../load/patient.ts'
import { observe } from '../measure/observe.ts'
import type { Measured } from '../src/results.ts'
import { loginFigures } from './figures.ts'
import { AROUND_S, hasSpillway, type Measurement, picked, type Scenario, type Setting } from './scenario.ts'
import { withContender, withPipeline } from './warm.ts'

const USERS = 5_000
/** Users arrive over the first half of it. */
const DURATION_S = 8

export const stress5000: Scenario = {
  name: 'stress-5000',
  title: 'Five thousand users arrive',
  question: 'When five thousand users log in at once, who gets an answer in time, and how many a second?',
  settings: (setting) => ({
    users: usersOf(setting),
    seconds: setting.durationS ?? DURATION_S,
    timeoutMs: TIMEOUT_MS,
    argon2id: costOf.argon2id,
  }),
  plan: (setting) => [
    ...picked(setting, shortSet).map((contender) => realHash(contender, setting)),
    ...pipeline(setting),
  ],
}

/** Hashing at hand, and behind a queue. */
const shortSet = ['in-process', 'spillway']

function usersOf(setting: Setting): number {
  return setting.users ?? USERS
}

function realHash(contender: Setting['contenders'][number], setting: Setting): Measurement {
  return {
    contender: contender.name,
    variant: 'argon2id',
    placement: 'apart',
    estimatedS: estimatedS(setting) + (contender.name === 'spillway' ? 0 : TIMEOUT_MS / 1_000),
    measure: async () => {
      const refusal = contender.refuses?.(usersOf(setting))
      if (refusal !== undefined) throw new Error(`not run: ${refusal}`)
      return withContender(contender, setting, 'argon2id', (running) => stress(running, setting, 'argon2id'))
    },
  }
}

/** The pipeline alone, without a hash: no contender, and marked as such. */
function pipeline(setting: Setting): Measurement[] {
  if (!hasSpillway(setting)) return []
  const measure = () => withPipeline(setting, (running) => stress(running, setting, 'token'))
  return [{ contender: 'spillway', variant: 'token', placement: 'together', estimatedS: estimatedS(setting), measure }]
}

async function stress(running: Running, setting: Setting, credential: Credential): Promise<Measured> {
  const durationMs = (setting.durationS ?? DURATION_S) * 1_000
  const observed = await observe(running, setting.servers, () =>
    patientLoad({
      url: running.url,
      callers: usersOf(setting),
      rampMs: durationMs / 2,
      durationMs,
      body: (caller) => setting.accounts.login(credential, caller),
    }),
  )
  const { tally, mostOpen } = observed.result
  const measured = loginFigures(observed)
  return {
    ...measured,
    figures: {
      ...measured.figures,
      timeoutPercent: tally.share('timeout'),
      answeredPercent: tally.share('ok', 'ticket', 'busy'),
      deferredPercent: tally.share('ticket', 'busy'),
      peakPerSecond: Math.max(...tally.bySecond.map((counts) => counts.ok)),
      mostOpen,
    },
    series: { ...measured.series, outcomes: [{ ...tally.counts }] },
  }
}

function estimatedS(setting: Setting): number {
  return (setting.durationS ?? DURATION_S) + AROUND_S
}
