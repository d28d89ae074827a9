/**
 * Hashes in the process of an application, for its tests: a file of tests starts no process. CommonJS, because Jest requires it; the package
 * @spillway/client holds it bundled into one file.
 */
const { workerConcurrency }: typeof import('./consumer/cpu-limit.js') = require('./consumer/cpu-limit.js')

const { answering }: typeof import('./beside/serve.js') = require('./beside/serve.js')

type Settings = import('@spillway/queue/wire/beside').BesideSettings
type Answering = typeof answering

// Loaded before any call: Jest loads nothing once a test has ended, and a test may have left a call without await.
for (const name of ['@node-rs/argon2', '@node-rs/bcrypt']) {
  try {
    require(name)
  } catch {
    // The call that needs it tells.
  }
}

/** As the process beside answers; resolves with undefined when nothing can hash here, which was said. */
exports.open = ({ policy, concurrency }: Settings, say: Parameters<Answering>[1]): ReturnType<Answering> =>
  answering({ policy, processors: concurrency ?? workerConcurrency(), native: false }, say)
