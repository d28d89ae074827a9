// All scenarios, in the order in which they run: what takes longest first, so that no lane is left with it.
import type { Scenario } from './scenario.ts'
import { crowdScenario } from './scenarios/crowd.ts'
import { fairnessScenarios } from './scenarios/fairness.ts'
import { gatewayFlood, gatewayOverload } from './scenarios/gateway-overload.ts'
import { clock, gatewayKilled, gatewayRestarts } from './scenarios/gateways.ts'
import { keyRotation } from './scenarios/key-rotation.ts'
import { lineScenarios } from './scenarios/line.ts'
import { lineLoopsScenarios } from './scenarios/line-loops.ts'
import { oldSystem } from './scenarios/old-system.ts'
import { overloadScenarios } from './scenarios/overload.ts'
import { postgresScenarios } from './scenarios/postgres.ts'
import { redisScenarios } from './scenarios/redis.ts'
import { rollingScenarios } from './scenarios/rolling.ts'
import { severalRedisScenarios, severalRolling } from './scenarios/several-redis.ts'
import { stuffing } from './scenarios/stuffing.ts'
import { noWorkerScenarios, workerScenarios } from './scenarios/workers.ts'
import { workersJoining } from './scenarios/workers-joining.ts'

export const scenarios: readonly Scenario[] = [
  gatewayOverload,
  gatewayFlood,
  ...lineScenarios,
  ...lineLoopsScenarios,
  workersJoining,
  ...severalRedisScenarios,
  ...redisScenarios,
  crowdScenario,
  ...overloadScenarios,
  severalRolling,
  ...rollingScenarios,
  stuffing,
  gatewayRestarts,
  keyRotation,
  oldSystem,
  ...workerScenarios,
  ...noWorkerScenarios,
  ...fairnessScenarios,
  gatewayKilled,
  ...postgresScenarios,
  clock,
]
