// The entry of a worker of tests: as deployed (worker/src/main.cts), with doubles of stored hashes.
require('node:v8').setFlagsFromString('--semi-space-growth-factor=1')
const { sizeThreadPool } = require('@spillway/worker/consumer/cpu-limit')

const concurrency = sizeThreadPool()

void Promise.all([import('@spillway/worker/start'), import('./doubles.mjs')]).then(([{ start }, { loadWithDoubles }]) =>
  start(process.env, concurrency, loadWithDoubles),
)
