// The entry point for tests of other packages: real services and processes, and waiting for states.

export { freePort, listening } from '../processes/port.ts'
export { until } from '../processes/until.ts'
export { readinessOf } from '../start/member.ts'
export { newSealKey, newSigningKey } from '../start/secrets.ts'
export { closedGate, createNamespace, type Ending, type Namespace, scratchDir } from './namespace.ts'
export {
  clockOff,
  type Exit,
  type LogLine,
  type ProcessToTest,
  redisTime,
  startProcess,
  startStopwatch,
  type TestProcess,
} from './process.ts'
export { monitorRedis } from './redis-monitor.ts'
export {
  type GatewayProcess,
  type Member,
  type MemberOptions,
  openSpillway,
  type Spillway,
  type SpillwayOptions,
  startWorker,
} from './spillway.ts'
export { startProxy, type TcpProxy } from './tcp-proxy.ts'
