// Five thousand users at once: how many still get an answer, and how many a second.
import { TIMEOUT_MS } from '@spillway/local/testing/api-client'
import type { Running } from '../contenders/contender.ts'
import { costOf } from '../contenders/hashing.ts'
import type { Credential } from '../load/accounts.ts'
import { patientLoad } from '../load/patient.ts'
import { observe } from '../measure/observe.ts'
import type { Measured } from '../src/results.ts'
import { loginFigures } from './figures.ts'
import { ofContenders, ofPipeline } from './measurements.ts'
import { picked, type Scenario, type Setting } from './scenario.ts'

const USERS = 5_000
/** Users arrive over the first half of it. */
const DURATION_S = 8

export const stress5000: Scenario = {
  name: 'stress-5000',
  title: 'Five thousand users arrive',
  question: 'When five thousand users log in at once, who gets an answer in time, and how many a second?',
  settings: (setting) => ({
    users: setting.users ?? USERS,
    seconds: setting.durationS ?? DURATION_S,
    timeoutMs: TIMEOUT_MS,
    argon2id: costOf.argon2id,
  }),
  plan: (setting) => {
    const callers = setting.users ?? USERS
    const durationS = setting.durationS ?? DURATION_S
    const options = { contenders: picked(setting), callers, estimatedS: durationS + TIMEOUT_MS / 1_000 }
    return [
      ...ofContenders(setting, options, (running) => stress(running, setting, 'argon2id', callers, durationS)),
      // The pipeline alone, without a hash: no contender, and marked as such.
      ...ofPipeline(setting, durationS, (running) => stress(running, setting, 'token', callers, durationS)),
    ]
  },
}

async function stress(
  running: Running,
  setting: Setting,
  credential: Credential,
  callers: number,
  durationS: number,
): Promise<Measured> {
  const observed = await observe(running, setting.servers, () =>
    patientLoad({
      url: running.url,
      callers,
      arriveMs: durationS * 500,
      durationMs: durationS * 1_000,
      credentials: (caller) => setting.accounts.login(credential, caller),
    }),
  )
  const { tally } = observed.result
  const measured = loginFigures(observed)
  return {
    ...measured,
    figures: {
      ...measured.figures,
      timeoutPercent: tally.share('timeout'),
      answeredPercent: tally.share('ok', 'ticket', 'busy'),
      deferredPercent: tally.share('ticket', 'busy'),
      peakPerSecond: Math.max(0, ...tally.bySecond.map((counts) => counts.ok)),
    },
    series: { ...measured.series, outcomes: [{ ...tally.counts }] },
  }
}
