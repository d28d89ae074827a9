/**
 * Entry point of the process beside an application that has no queue. It is CommonJS, as main.cts
 * is. The package @spillway/client contains it, bundled into one file.
 */
require('@spillway/common/shutdown')

const { workerConcurrency }: typeof import('./consumer/cpu-limit.js') = require('./consumer/cpu-limit.js')

/** Threads in addition to those that hash: the process reads files while it starts. */
const SPARE_THREADS = 1

const settings: import('@spillway/queue/wire/beside').BesideSettings = JSON.parse(process.argv[2] ?? '{}')
const concurrency = settings.concurrency ?? workerConcurrency()
process.env.UV_THREADPOOL_SIZE = String(concurrency + SPARE_THREADS)

void import('./beside/serve.js').then(({ serve }) => serve(settings.policy, concurrency))
