// Five thousand users at once: how many still get an answer, and how many a second.
import { TIMEOUT_MS } from '@spillway/local/rig/api-client'
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

export const stress5000: Scenario = {
  name: 'stress-5000',
  title: 'Five thousand users arrive',
  question: 'When five thousand users log in at once, who gets an answer in time, and how many a second?',
  durationS: 8,
  settings: ({ users = USERS }) => ({ users, timeoutMs: TIMEOUT_MS, argon2id: costOf.argon2id }),
  plan: (setting) => [
    ...ofContenders(setting, { contenders: picked(setting), callers: setting.users ?? USERS }, (running) =>
      stress(running, setting, 'argon2id'),
    ),
    // The pipeline alone, without a hash: no contender, and marked as such.
    ...ofPipeline(setting, (running) => stress(running, setting, 'token')),
  ],
}

/** Users arrive over the first half of its duration. */
async function stress(running: Running, setting: Setting, credential: Credential): Promise<Measured> {
  const { users = USERS, durationS } = setting
  const observed = await observe(running, setting.servers, () =>
    patientLoad({
      url: running.url,
      callers: users,
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
    series: { outcomes: [{ ...tally.counts }] },
  }
}
