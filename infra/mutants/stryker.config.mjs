// The command `pnpm mutants`: Stryker makes one small mistake at a time in the modules that need no server, and runs their unit tests. The
// tests run once without mistakes before it, because Stryker ignores files that fail to load. It fails below the score of `break`. The report
// names each mistake that was not noticed: .spillway/mutants/report.html
// @ts-check

/** Modules whose unit tests cover every line, by folder. */
const modules = {
  'api/src': ['rounds'],
  'api/src/board': ['words'],
  'api/src/guessing': ['device-token', 'proof-of-work'],
  'api/src/limits': ['client-network'],
  'api/src/load-shedding': ['preference'],
  'api/src/ops': ['lockout'],
  'api/src/sessions': ['refresh-tokens', 'signing-keys'],
  'api/src/waiting': ['admission', 'wait-times'],
  'worker/src/consumer': ['cpu-limit', 'jobs-in-hand', 'liveness', 'share-slots'],
  'worker/src/hashing': ['capacity-estimate', 'engine'],
  'worker/client/src': ['within'],
  'worker/client/src/passwords': ['deferred-share', 'load-state', 'outstanding-limit', 'waiters'],
  'worker/client/src/protocol': ['capacity', 'job', 'policy', 'reply', 'seal', 'setting', 'stored-hash'],
  'worker/client/src/queue': ['keys'],
  'worker/client/src/redis': ['clock', 'servers', 'url'],
  'worker/client/src/servers': ['choose', 'health'],
}

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: Object.entries(modules).flatMap(([folder, names]) => names.map((name) => `${folder}/${name}.ts`)),
  testRunner: 'vitest',
  plugins: [import.meta.resolve('@stryker-mutator/vitest-runner')],
  vitest: { configFile: 'infra/mutants/vitest.config.ts', related: false },
  concurrency: 2,
  // In percent; what is left are mistakes that change nothing: the clock of the process, a first place that nobody reads.
  thresholds: { high: 97, low: 94, break: 94 },
  reporters: ['html', 'dots', 'clear-text'],
  clearTextReporter: { logTests: false, reportTests: false },
  htmlReporter: { fileName: '.spillway/mutants/report.html' },
  tempDirName: '.spillway/mutants/sandboxes',
  ignorePatterns: ['.spillway', 'loadtests', '.git', '**/target', '**/*.png'],
}
