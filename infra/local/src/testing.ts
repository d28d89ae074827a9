// The door for the tests of the other packages: real services, real processes, states instead of sleeps.
export { atEnd } from './at-end.ts'
export { clockOff } from './clock-off.ts'
export { createNamespace, type Namespace } from './namespace.ts'
export { freePort } from './port.ts'
export { type Exit, type LogLine, type ProcessToTest, startProcess, type TestProcess } from './test-process.ts'
export { until } from './until.ts'
