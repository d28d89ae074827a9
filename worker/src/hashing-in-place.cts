/**
 * Hashes in the process of an application, for its tests. It is CommonJS, because Jest requires it.
 * The package @spillway/client contains it, bundled into one file.
 */
const { workerConcurrency }: typeof import('./consumer/cpu-limit.js') = require('./consumer/cpu-limit.js')

const { Hashing }: typeof import('./beside/serve.js') = require('./beside/serve.js')

type Settings = import('@spillway/queue/wire/beside').BesideSettings
type Say = Parameters<typeof Hashing.open>[1]

// Before any call: Jest loads no module after a test has ended, and a test may not await a call.
for (const name of ['@node-rs/argon2', '@node-rs/bcrypt']) {
  try {
    require(name)
  } catch {
    // The call that needs the package reports the error.
  }
}

/** Answers as the process beside does. Undefined if nothing can hash here; the reason was sent. */
exports.open = async ({ policy, concurrency }: Settings, say: Say) => {
  const hashing = await Hashing.open({ policy, processors: concurrency ?? workerConcurrency(), native: false }, say)
  return hashing && ((message: Parameters<typeof hashing.take>[0]) => hashing.take(message))
}
