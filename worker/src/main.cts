/**
 * Entry point of a worker. CommonJS, because ES modules are loaded through libuv's thread pool, whose size is fixed at its first use:
 * here nothing has used it yet.
 */
require('./process/no-inspector.js')

/*
 * New objects keep V8's initial megabyte: 48 would be kept for ever, a fifth of the memory of a process that allocates little. The size
 * itself is only a flag of the command line, which every way to start a worker would have to repeat.
 */
require('node:v8').setFlagsFromString('--semi-space-growth-factor=1')

const { workerConcurrency }: typeof import('./consumer/cpu-limit.js') = require('./consumer/cpu-limit.js')

/** Threads in addition to those that hash, so that DNS lookups and file reads do not queue behind hashes. */
const SPARE_THREADS = 2

const concurrency = workerConcurrency()
process.env.UV_THREADPOOL_SIZE = String(concurrency + SPARE_THREADS)

void import('./start.js').then(({ start }) => start(process.env, concurrency))
