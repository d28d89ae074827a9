/**
 * Entry point of a worker. CommonJS, because an ES module is loaded through libuv's thread pool, and the pool takes its size
 * when it is first used: here nothing has used it yet.
 */
require('./process/no-inspector.js')

const { workerConcurrency }: typeof import('./consumer/cpu-limit.js') = require('./consumer/cpu-limit.js')
const { standBack }: typeof import('./process/priority.js') = require('./process/priority.js')

/** Threads beside the ones that hash, so that a DNS lookup or a file read never queues behind a hash. */
const SPARE_THREADS = 2

const concurrency = workerConcurrency()
process.env.UV_THREADPOOL_SIZE = String(concurrency + SPARE_THREADS)

standBack()

void import('./start.js').then(({ start }) => start(process.env, concurrency))
