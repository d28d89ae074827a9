// Which modules are changed, and which tests are to notice: those that need neither PostgreSQL nor Redis nor a process.

/** Modules whose tests run by themselves, in milliseconds. */
export const modules = [
  'api/src/admission.ts',
  'api/src/client-network.ts',
  'api/src/lockout.ts',
  'api/src/prefer.ts',
  'api/src/signing-keys.ts',
  'api/src/wait-times.ts',
  'worker/src/board-words.ts',
  'worker/src/client/load-state.ts',
  'worker/src/client/waiters.ts',
  'worker/src/clock.ts',
  'worker/src/cpu-limit.ts',
  'worker/src/hashing/algorithm-name.ts',
  'worker/src/hashing/engine.ts',
  'worker/src/liveness.ts',
  'worker/src/protocol/capacity.ts',
  'worker/src/protocol/job.ts',
  'worker/src/protocol/reply.ts',
  'worker/src/protocol/seal.ts',
  'worker/src/redis-url.ts',
  'worker/src/within.ts',
]

/** Their tests: all that are called so, and these. */
export const testFiles = [
  'api/test/*.unit.test.ts',
  'api/test/ops-lockout.test.ts',
  'worker/test/*.unit.test.ts',
  ...['cpu-limit', 'engine', 'redis-url', 'schema', 'seal'].map((name) => `worker/test/${name}.test.ts`),
]
