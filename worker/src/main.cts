/**
 * Entry point of a worker. CommonJS, because an ES module is loaded through libuv's thread pool, and the pool takes its size
 * when it is first used: here nothing has used it yet.
 */
const { constants, setPriority }: typeof import('node:os') = require('node:os')

const { workerConcurrency }: typeof import('./cpu-limit.js') = require('./cpu-limit.js')

/** Threads beside the ones that hash, so that a DNS lookup or a file read never queues behind a hash. */
const SPARE_THREADS = 2

const concurrency = workerConcurrency()
process.env.UV_THREADPOOL_SIZE = String(concurrency + SPARE_THREADS)

// Hashing stands back for whatever shares its cores and has somebody waiting: Redis, or a gateway. The threads that hash are
// started later and take this over. Between pods it changes nothing: there the limits decide.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL)

void import('./start.js').then(({ start }) => start(process.env, concurrency))
