// Crowds of callers, each of whom asks again when it is answered, and their effect on everyone else.
import type { Running } from '../contenders/contender.ts'
import { algorithms, costOf } from '../contenders/hashing.ts'
import { type Caller, loginCaller, visitCaller, withCallers } from '../load/closed.ts'
import { observe } from '../measure/observe.ts'
import type { Measured } from '../src/results.ts'
import { loginFigures } from './figures.ts'
import { ofContenders } from './measurements.ts'
import { picked, type Scenario, type Setting } from './scenario.ts'

const USERS = 100
const LOGIN_S = 4
const MIXED_S = 3

function crowd(running: Running, setting: Setting, caller: Caller, seconds: number): Promise<Measured> {
  const loop = { urls: [running.url], callers: setting.users ?? USERS, caller }
  return withCallers(loop, async ({ countFor }) =>
    loginFigures(await observe(running, setting.servers, () => countFor(seconds))),
  )
}

/** The NestJS post's test: a hundred users log in over and over, and the rest of the API is asked for its pulse meanwhile. */
export const login100: Scenario = {
  name: 'login-100',
  title: 'A hundred users log in',
  question: 'What do a hundred users who log in over and over get, and what does everyone else on the same API?',
  settings: (setting) => ({ users: setting.users ?? USERS, seconds: setting.durationS ?? LOGIN_S, ...costOf }),
  plan: (setting) =>
    algorithms.flatMap((algorithm) => {
      const seconds = setting.durationS ?? LOGIN_S
      const contenders =
        algorithm === 'bcrypt' ? picked(setting, ['in-process', 'piscina', 'spillway']) : setting.contenders
      const caller = loginCaller(setting.accounts, algorithm)
      return ofContenders(setting, { contenders, algorithm, estimatedS: seconds }, (running) =>
        crowd(running, setting, caller, seconds),
      )
    }),
}

/** The Piscina post's test: a hundred users register, log in and write. */
export const mixed100: Scenario = {
  name: 'mixed-100',
  title: 'A hundred users register, log in and write',
  question: 'What does a mix of hashing and ordinary writes get through, a hundred users at a time?',
  settings: (setting) => ({
    users: setting.users ?? USERS,
    seconds: setting.durationS ?? MIXED_S,
    argon2id: costOf.argon2id,
  }),
  plan: (setting) => {
    const seconds = setting.durationS ?? MIXED_S
    return ofContenders(setting, { contenders: picked(setting), estimatedS: seconds }, (running) =>
      crowd(running, setting, visitCaller(setting.accounts), seconds),
    )
  },
}
