/**
 * Hashes in the process of an application, for its tests. CommonJS, because Jest requires it; the
 * package @spillway/client holds it bundled into one file.
 */
const { workerConcurrency }: typeof import('./consumer/cpu-limit.js') = require('./consumer/cpu-limit.js')

const { Hashing }: typeof import('./beside/serve.js') = require('./beside/serve.js')

type Settings = import('@spillway/queue/wire/beside').BesideSettings
type Say = Parameters<typeof Hashing.open>[1]

// Before any call: Jest loads nothing once a test has ended, and a test may not await a call.
for (const name of ['@node-rs/argon2', '@node-rs/bcrypt']) {
  try {
    require(name)
  } catch {
    // The call that needs it tells.
  }
}

/** As the process beside answers; undefined when nothing can hash here, which was said. */
exports.open = async ({ policy, concurrency }: Settings, say: Say) => {
  const hashing = await Hashing.open({ policy, processors: concurrency ?? workerConcurrency(), native: false }, say)
  return hashing && ((message: Parameters<typeof hashing.take>[0]) => hashing.take(message))
}
