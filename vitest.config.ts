import { availableParallelism } from 'node:os'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

/** Only a hang takes longer. */
const HANG_MS = 120_000

/** Processes of test files end with the runner, also when it is killed and a test never ends. */
const END_WITH_RUNNER = `data:text/javascript,process.once('disconnect', () => process.exit(1))`

/**
 * The folder of a test file is its level.
 * - `unit`: no server, no child process, simulated clocks
 * - `service`: real PostgreSQL and Redis, one set for the run
 * - `process`: processes that are started, signalled, killed
 * - `all`: what takes long: packages, other languages, releases, images, charts
 *
 * Vitest runs projects in the order of their names: what takes long begins first. Most tests wait, so there are more processes
 * than cores; each runs one file after the other.
 */
const levels = ['all', 'process', 'service', 'unit']

const projects = levels.map(
  (level): TestProjectInlineConfiguration => ({
    // Tests of a package import `src/x.ts` and run what is built of it, as threads, child processes and other packages do: a
    // process has one copy of each module. What is not built, of infra and loadtests, is imported by the name of the package.
    resolve: { alias: [{ find: /^((?:\.\.\/)+(?!infra\/)(?:[\w-]+\/)*)src\/(.*)\.ts$/, replacement: '$1dist/$2.js' }] },
    test: {
      name: level,
      include: [`**/test/${level}/**/*.test.ts`],
      exclude: ['**/node_modules/**', '**/dist/**', '**/target/**', '**/.*/**'],
      globalSetup: 'infra/local/src/harness/setup.ts',
      pool: 'forks',
      execArgv: ['--import', END_WITH_RUNNER],
      isolate: false,
      maxWorkers: 3 * availableParallelism(),
      testTimeout: HANG_MS,
      hookTimeout: HANG_MS,
      restoreMocks: true,
      server: { deps: { external: [/\/dist\//] } },
    },
  }),
)

export default defineConfig({
  test: { projects, teardownTimeout: HANG_MS, reporters: ['default', './infra/local/src/harness/counts.ts'] },
})
