/**
 * Hashes in the process of an application, for its tests: a file of tests starts no process. CommonJS, because Jest requires it; the package
 * @spillway/client holds it bundled into one file.
 */
const { workerConcurrency }: typeof import('./consumer/cpu-limit.js') = require('./consumer/cpu-limit.js')

type Settings = import('@spillway/client/protocol/beside').BesideSettings
type Answering = typeof import('./beside/serve.js').answering

/** As the process beside answers; resolves with undefined when nothing can hash here, which was said. */
exports.open = async ({ policy, concurrency }: Settings, say: Parameters<Answering>[1]): ReturnType<Answering> => {
  const { answering } = await import('./beside/serve.js')
  return await answering({ policy, processors: concurrency ?? workerConcurrency(), native: false }, say)
}
