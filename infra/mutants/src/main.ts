// `pnpm mutants`: makes one small mistake at a time in the modules that need no server, and sees whether their tests notice.
// Stryker makes the mistakes and runs the tests. Red when more than one in ten goes unnoticed, or one that survivors.txt does not
// name, or when one that it names is noticed by now.
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { Stryker } from '@stryker-mutator/core'
import { modules, testFiles } from './modules.ts'
import { readSurvivors } from './survivors.ts'
import { judge, report } from './verdict.ts'

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
    '!{api,worker,worker/client}/*.json',
    '!tsconfig.base.json',
  ],
  tempDirName: `${stateDir}/sandboxes`,
  // Each test file as one file of JavaScript beside it: to load TypeScript would take four times as long as the tests.
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
