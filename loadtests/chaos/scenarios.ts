// All scenarios in the order in which they run: the longest first, so that no lane ends with one.
import type { Scenario } from './scenario.ts'
import { newConnections } from './scenarios/arrivals.ts'
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

/** By the file of `scenarios/` that they are in. */
export const scenariosOfFiles: Readonly<Record<string, readonly Scenario[]>> = {
  'gateway-overload': [gatewayOverload, gatewayFlood],
  line: lineScenarios,
  'line-loops': lineLoopsScenarios,
  'old-system': [oldSystem],
  'workers-joining': [workersJoining],
  'several-redis': [...severalRedisScenarios, severalRolling],
  redis: redisScenarios,
  crowd: [crowdScenario],
  overload: overloadScenarios,
  rolling: rollingScenarios,
  stuffing: [stuffing],
  gateways: [gatewayRestarts, gatewayKilled, clock],
  'key-rotation': [keyRotation],
  workers: [...workerScenarios, ...noWorkerScenarios],
  fairness: fairnessScenarios,
  arrivals: [newConnections],
  postgres: postgresScenarios,
}

export const scenarios: readonly Scenario[] = Object.values(scenariosOfFiles).flat()
