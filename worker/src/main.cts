/**
 * Entry point of a worker. CommonJS, because ES modules are loaded through libuv's thread pool,
 * whose size is fixed at its first use: here nothing has used it yet.
 */
require('@spillway/common/shutdown')

// While it starts, new objects keep V8's initial megabyte: 48 would be a fifth of a worker's memory.
// The size itself is only a command-line flag, which every way to start a worker would have to repeat.
require('node:v8').setFlagsFromString('--semi-space-growth-factor=1')

const { sizeThreadPool }: typeof import('./consumer/cpu-limit.js') = require('./consumer/cpu-limit.js')

const concurrency = sizeThreadPool()

void import('./start.js').then(({ start }) => start(process.env, concurrency))
