// The command `pnpm mutants`: Stryker makes one small mistake at a time in the modules that need no server, and runs their tests. Red when
// more than one in ten goes unnoticed, when one goes unnoticed that survivors.txt does not name, or when one that it names is noticed or gone.
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { Stryker } from '@stryker-mutator/core'
import { judge, readSurvivors, report } from './verdict.ts'

/** Modules whose tests need neither PostgreSQL nor Redis nor a process, and run in milliseconds. */
const modules = [
  'api/src/limits/client-network.ts',
  'api/src/ops/lockout.ts',
  'api/src/sessions/signing-keys.ts',
  'api/src/waiting/{admission,prefer,wait-times}.ts',
  'worker/src/board/words.ts',
  'worker/src/consumer/{cpu-limit,jobs-in-hand,liveness}.ts',
  'worker/src/hashing/{capacity-estimate,engine}.ts',
  'worker/client/src/passwords/{load-state,outstanding-limit,waiters}.ts',
  'worker/client/src/protocol/{capacity,job,reply,seal}.ts',
  'worker/client/src/queue/{keys,to-entries}.ts',
  'worker/client/src/redis/{clock,url}.ts',
  'worker/client/src/within.ts',
]

/** Their tests: all that are called so, and these. */
const testFiles = [
  'api/test/*.unit.test.ts',
  'api/test/ops-lockout.test.ts',
  'worker/test/*.unit.test.ts',
  'worker/client/test/*.unit.test.ts',
  ...['cpu-limit', 'engine'].map((name) => `worker/test/${name}.test.ts`),
  ...['redis-url', 'schema', 'seal'].map((name) => `worker/client/test/${name}.test.ts`),
]

const stateDir = '.spillway/mutants'
process.chdir(fileURLToPath(new URL('../../..', import.meta.url)))

const esbuild = createRequire(import.meta.url).resolve('esbuild/bin/esbuild')
const bundling =
  '--bundle --platform=node --format=esm --packages=external --outbase=. --outdir=. --out-extension:.js=.mjs'

const mutants = await new Stryker({
  mutate: modules,
  ignorePatterns: [
    '**',
    '!{api,worker,worker/client}/src/**',
    '!{api,worker,worker/client}/test/*.ts',
    '!worker/client/recipes/check/*.ts',
    '!{api,worker,worker/client}/*.json',
    '!tsconfig.base.json',
  ],
  tempDirName: `${stateDir}/sandboxes`,
  // Each test file as one file of JavaScript beside it: loading TypeScript would take four times as long as the tests.
  buildCommand: `${process.execPath} ${esbuild} ${testFiles.join(' ')} ${bundling}`,
  testRunner: 'tap',
  plugins: [import.meta.resolve('@stryker-mutator/tap-runner')],
  tap: { testFiles: ['{api,worker,worker/client}/test/*.mjs'], nodeArgs: ['--no-warnings', '--test-reporter=tap'] },
  coverageAnalysis: 'perTest',
  concurrency: 2,
  reporters: ['html', 'dots'],
  htmlReporter: { fileName: `${stateDir}/report.html` },
}).runMutationTest()

const verdict = judge(mutants, readSurvivors())
console.log(report(verdict))
process.exitCode = verdict.isGood ? 0 : 1
