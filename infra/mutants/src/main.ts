// The command `pnpm mutants`: Stryker makes one small mistake at a time in the modules that need no server, and runs their tests. Red when
// more than one in ten goes unnoticed, when one goes unnoticed that survivors.txt does not name, or when one that it names is noticed or gone.
import { fileURLToPath } from 'node:url'
import { Stryker } from '@stryker-mutator/core'
import { bundledTests, copiedPatterns, modules, repositoryDir } from './files.ts'
import { judge, readSurvivors, report } from './verdict.ts'

const stateDir = '.spillway/mutants'
process.chdir(repositoryDir)

const bundle = fileURLToPath(new URL('bundle.ts', import.meta.url))

const mutants = await new Stryker({
  mutate: modules,
  ignorePatterns: ['**', ...copiedPatterns.map((pattern) => `!${pattern}`)],
  tempDirName: `${stateDir}/sandboxes`,
  buildCommand: `${process.execPath} --import ${import.meta.resolve('tsx')} ${bundle}`,
  testRunner: 'tap',
  plugins: [import.meta.resolve('@stryker-mutator/tap-runner')],
  tap: { testFiles: [bundledTests], nodeArgs: ['--no-warnings', '--test-reporter=tap'] },
  coverageAnalysis: 'perTest',
  concurrency: 2,
  reporters: ['html', 'dots'],
  htmlReporter: { fileName: `${stateDir}/report.html` },
}).runMutationTest()

const verdict = judge(mutants, readSurvivors())
console.log(report(verdict))
process.exitCode = verdict.isGood ? 0 : 1
