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

function crowd(running: Running, { users = USERS, servers, durationS }: Setting, caller: Caller): Promise<Measured> {
  return withCallers({ urls: [running.url], callers: users, caller }, async (countFor) =>
    loginFigures(await observe(running, servers, () => countFor(durationS))),
  )
}

/** The NestJS post's test: a hundred users log in over and over, and the rest of the API is asked for its pulse meanwhile. */
export const login100: Scenario = {
  name: 'login-100',
  title: 'A hundred users log in',
  question: 'What do a hundred users who log in over and over get, and what does everyone else on the same API?',
  durationS: 4,
  settings: ({ users = USERS }) => ({ users, ...costOf }),
  plan: (setting) =>
    algorithms.flatMap((algorithm) => {
      const few = picked(setting, ['in-process', 'piscina', 'spillway'])
      const contenders = algorithm === 'bcrypt' ? few : setting.contenders
      return ofContenders(setting, { contenders, algorithm }, (running) =>
        crowd(running, setting, loginCaller(setting.accounts, algorithm)),
      )
    }),
}

/** The Piscina post's test: a hundred users register, log in and write. */
export const mixed100: Scenario = {
  name: 'mixed-100',
  title: 'A hundred users register, log in and write',
  question: 'What does a mix of hashing and ordinary writes get through, a hundred users at a time?',
  durationS: 3,
  settings: ({ users = USERS }) => ({ users, argon2id: costOf.argon2id }),
  plan: (setting) =>
    ofContenders(setting, { contenders: picked(setting) }, (running) =>
      crowd(running, setting, visitCaller(setting.accounts)),
    ),
}
