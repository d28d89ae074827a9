// All scenarios, in the order in which they run.
import type { Scenario } from './scenario.ts'
import { redisScenarios } from './scenarios/redis.ts'
import { rollingRestart } from './scenarios/rolling-restart.ts'
import { workerScenarios } from './scenarios/workers.ts'

export const scenarios: readonly Scenario[] = [...workerScenarios, rollingRestart, ...redisScenarios]
