// Which modules are changed, and which tests are to notice: those that need neither PostgreSQL nor Redis nor a process.

/** Modules whose tests run by themselves, in milliseconds. */
export const modules = [
  'api/src/waiting/admission.ts',
  'api/src/limits/client-network.ts',
  'api/src/ops/lockout.ts',
  'api/src/waiting/prefer.ts',
  'api/src/sessions/signing-keys.ts',
  'api/src/waiting/wait-times.ts',
  'worker/src/board/words.ts',
  'worker/client/src/passwords/load-state.ts',
  'worker/client/src/passwords/waiters.ts',
  'worker/client/src/redis/clock.ts',
  'worker/src/consumer/cpu-limit.ts',
  'worker/src/hashing/algorithm-name.ts',
  'worker/src/hashing/engine.ts',
  'worker/src/consumer/liveness.ts',
  'worker/client/src/protocol/capacity.ts',
  'worker/client/src/protocol/job.ts',
  'worker/client/src/protocol/reply.ts',
  'worker/client/src/protocol/seal.ts',
  'worker/client/src/redis/url.ts',
  'worker/client/src/within.ts',
]

/** Their tests: all that are called so, and these. */
export const testFiles = [
  'api/test/*.unit.test.ts',
  'api/test/ops-lockout.test.ts',
  'worker/test/*.unit.test.ts',
  'worker/client/test/*.unit.test.ts',
  ...['cpu-limit', 'engine'].map((name) => `worker/test/${name}.test.ts`),
  ...['redis-url', 'schema', 'seal'].map((name) => `worker/client/test/${name}.test.ts`),
]
