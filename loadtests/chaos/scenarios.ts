// All scenarios, in the order in which they run.
import type { Scenario } from './scenario.ts'
import { redisScenarios } from './scenarios/redis.ts'

export const scenarios: readonly Scenario[] = [...redisScenarios]
