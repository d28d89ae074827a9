// The NestJS post's test: a hundred users log in over and over, and the rest of the API is asked for its pulse meanwhile.
import { algorithms, costOf } from '../contenders/hashing.ts'
import { loginCaller } from '../load/requests.ts'
import { crowd } from './crowd.ts'
import { AROUND_S, picked, type Scenario } from './scenario.ts'
import { withContender } from './warm.ts'

const USERS = 100
const DURATION_S = 4
/** With bcrypt. With argon2id everyone takes part. */
const shortSet = ['in-process', 'piscina', 'spillway']

export const login100: Scenario = {
  name: 'login-100',
  title: 'A hundred users log in',
  question: 'What do a hundred users who log in over and over get, and what does everyone else on the same API?',
  settings: (setting) => ({
    users: setting.users ?? USERS,
    seconds: setting.durationS ?? DURATION_S,
    bcrypt: costOf.bcrypt,
    argon2id: costOf.argon2id,
  }),
  plan: (setting) =>
    algorithms.flatMap((algorithm) =>
      (algorithm === 'bcrypt' ? picked(setting, shortSet) : setting.contenders).map((contender) => {
        const durationS = setting.durationS ?? DURATION_S
        return {
          contender: contender.name,
          variant: algorithm,
          placement: 'apart',
          estimatedS: durationS + AROUND_S,
          measure: () =>
            withContender(contender, setting, algorithm, (running) =>
              crowd(running, setting, loginCaller(setting.accounts, algorithm), setting.users ?? USERS, durationS),
            ),
        }
      }),
    ),
}
