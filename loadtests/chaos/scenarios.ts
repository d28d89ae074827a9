// All scenarios, in the order in which they run.
import type { Scenario } from './scenario.ts'
import { clock } from './scenarios/clock.ts'
import { fairnessScenarios } from './scenarios/fairness.ts'
import { gatewayKilled } from './scenarios/gateway-killed.ts'
import { gatewayOverload } from './scenarios/gateway-overload.ts'
import { noWorkerScenarios } from './scenarios/no-worker.ts'
import { overloadScenarios } from './scenarios/overload.ts'
import { postgresScenarios } from './scenarios/postgres.ts'
import { redisScenarios } from './scenarios/redis.ts'
import { rollingRestart } from './scenarios/rolling-restart.ts'
import { workerScenarios } from './scenarios/workers.ts'

export const scenarios: readonly Scenario[] = [
  ...overloadScenarios,
  gatewayOverload,
  ...fairnessScenarios,
  ...workerScenarios,
  ...noWorkerScenarios,
  gatewayKilled,
  rollingRestart,
  clock,
  ...postgresScenarios,
  ...redisScenarios,
]
