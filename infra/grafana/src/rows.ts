// The dashboard: each row is a question, and its panels are the answer. Gauges of the queue are the same at every gateway, so
// the highest counts; counters are added up.
import type { Row } from './panel.ts'
import { isAnyoneAttacking } from './rows/attacks.ts'
import { doesItHoldTogether } from './rows/health.ts'
import { areLoginsFine } from './rows/logins.ts'
import { howDeepIsTheQueue } from './rows/queue.ts'
import { whoIsSlow } from './rows/slow.ts'
import { areWorkersEnough } from './rows/workers.ts'

export const rows: Row[] = [
  areLoginsFine,
  howDeepIsTheQueue,
  whoIsSlow,
  areWorkersEnough,
  isAnyoneAttacking,
  doesItHoldTogether,
]
