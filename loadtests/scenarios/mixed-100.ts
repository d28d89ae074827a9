// The Piscina post's test: a hundred users register, log in and write.
import { costOf } from '../contenders/hashing.ts'
import { visitCaller } from '../load/requests.ts'
import { crowd } from './crowd.ts'
import { AROUND_S, picked, type Scenario } from './scenario.ts'
import { withContender } from './warm.ts'

const USERS = 100
const DURATION_S = 3
/** Hashing at hand, and behind a queue. */
const shortSet = ['in-process', 'spillway']

export const mixed100: Scenario = {
  name: 'mixed-100',
  title: 'A hundred users register, log in and write',
  question: 'What does a mix of hashing and ordinary writes get through, a hundred users at a time?',
  settings: (setting) => ({
    users: setting.users ?? USERS,
    seconds: setting.durationS ?? DURATION_S,
    argon2id: costOf.argon2id,
  }),
  plan: (setting) =>
    picked(setting, shortSet).map((contender) => {
      const durationS = setting.durationS ?? DURATION_S
      return {
        contender: contender.name,
        variant: 'argon2id',
        placement: 'apart',
        estimatedS: durationS + AROUND_S,
        measure: () =>
          withContender(contender, setting, 'argon2id', (running) =>
            crowd(running, setting, visitCaller(setting.accounts), setting.users ?? USERS, durationS),
          ),
      }
    }),
}
