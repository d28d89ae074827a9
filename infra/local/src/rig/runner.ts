// Runs test files in Vitest by their levels, which folders tell, and counts how they ended.
import { existsSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { TestProjectInlineConfiguration } from 'vitest/config'
import {
  BaseSequencer,
  createVitest,
  type InlineConfig,
  type TestModule,
  type TestSpecification,
  type TestSuite,
  type Vite,
} from 'vitest/node'

interface TestResults {
  passed: number
  failed: number
  skipped: number
}

interface TestRun {
  root: string
  /** Parts of paths: files whose path contains one of them [every file that belongs to the run]. */
  filters: string[]
  /** Includes the level `all`, which filters reach in any case. */
  all: boolean
  /** Starts what the chosen levels stand on; its end is awaited. */
  prepare(levels: ReadonlySet<string>): Promise<{ close(): Promise<void> }>
  signal: AbortSignal
}

export const nothing: TestResults = { passed: 0, failed: 0, skipped: 0 }

/** Zeros if no file fits. */
export async function runTests({ root, filters, all, prepare, signal }: TestRun): Promise<TestResults> {
  // Among the options the sequencer would replace each level's own `sequence`.
  const vitest = await createVitest(
    'test',
    { config: false, ...optionsFor(root) },
    { test: { sequence: { sequencer: LongestFirst } } },
  )
  try {
    await vitest.standalone()
    const found = await vitest.globTestSpecifications(filters)
    const chosen = all || filters.length > 0 ? found : found.filter((file) => levelOf(file) !== 'all')
    if (chosen.length === 0) return nothing
    const services = await prepare(new Set(chosen.map(({ project }) => project.name)))
    try {
      const stopped = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
      const run = await Promise.race([vitest.runTestSpecifications(fillingPauses(chosen), true), stopped])
      // Closing ends the processes of the files that run.
      return run ? count(run.testModules, run.unhandledErrors.length) : { ...nothing, failed: 1 }
    } finally {
      await services.close()
    }
  } finally {
    await vitest.close()
  }
}

/** Units run among service tests, if there are any: they compute while those wait. */
function fillingPauses(files: TestSpecification[]): TestSpecification[] {
  const service = files.find(({ project }) => project.name === 'service')?.project
  if (service === undefined) return files
  return files.map((file) => (file.project.name === 'unit' ? service.createSpecification(file.moduleId) : file))
}

/** Counts each error outside of a test as a failed test: of loading a file, a hook, a rejection. */
function count(modules: readonly TestModule[], errorsElsewhere: number): TestResults {
  const results = { ...nothing, failed: errorsElsewhere }
  for (const module of modules) {
    const around: (TestModule | TestSuite)[] = [module, ...module.children.allSuites()]
    results.failed += around.filter((each) => each.errors().length > 0).length
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      // A test that was not run must not look like one that passed.
      results[state === 'pending' ? 'failed' : state] += 1
    }
  }
  return results
}

export function summary({ passed, failed, skipped }: TestResults): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

/** Whether a run may end with exit code 0: something ran, and nothing failed. */
export function isGreen({ passed, failed }: TestResults): boolean {
  return failed === 0 && passed > 0
}

/**
 * The folder of a test file.
 * - `unit`: no server, no child process, simulated clocks; in one process, or among service tests
 * - `service`: real PostgreSQL and Redis, one set for the run
 * - `process`: processes that are started, signalled, killed, for what README promises
 * - `all`: what takes long: more services and processes, packages, other languages, releases,
 *   images, charts: by `pnpm test --all` alone, or by name
 */
type Level = 'unit' | 'service' | 'process' | 'all'

const slowestFirst: readonly Level[] = ['all', 'process', 'service', 'unit']

/** By the innermost folder of tests: a checkout may be below another. */
function levelOf({ moduleId }: TestSpecification): Level | undefined {
  const [, level] = /.*\/test\/(\w+)\//.exec(moduleId) ?? []
  return slowestFirst.find((known) => known === level)
}

/** Begins with slow levels, then long files: nothing long is left for the end of a run. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const bytes = new Map(files.map((file) => [file, statSync(file.moduleId).size]))
    const sizeOf = (file: TestSpecification): number => bytes.get(file) ?? 0
    const sorted = (await super.sort(files)).toSorted((one, other) => sizeOf(other) - sizeOf(one))
    return slowestFirst.flatMap((level) => sorted.filter((file) => levelOf(file) === level))
  }
}

/** Processes of test files end with the runner, even if it is killed and a test never ends. */
const END_WITH_RUNNER = `data:text/javascript,process.once('disconnect', () => process.exit(1))`
/** Only a hang takes longer. */
const HANG_MS = 120_000

/** Projects run one after the other. All tests but units mostly wait. */
function optionsFor(root: string): InlineConfig {
  const others = project(root, ['service', 'process', 'all'], 3 * availableParallelism(), 1)
  const projects = [project(root, ['unit'], 1, 0), others]
  return { root, watch: false, reporters: ['default'], teardownTimeout: HANG_MS, projects }
}

/** Its processes each run one file after the other, and have loaded most modules for the first. */
function project(
  root: string,
  levels: readonly [Level, ...Level[]],
  maxWorkers: number,
  groupOrder: number,
): TestProjectInlineConfiguration {
  return {
    plugins: [compiledSources],
    test: {
      name: levels[0],
      root,
      include: levels.map((level) => `**/test/${level}/**/*.test.ts`),
      exclude: ['**/node_modules/**', '**/dist/**', '**/target/**', '**/.*/**'],
      pool: 'forks',
      execArgv: ['--import', END_WITH_RUNNER],
      isolate: false,
      maxWorkers,
      sequence: { groupOrder },
      testTimeout: HANG_MS,
      hookTimeout: HANG_MS,
      restoreMocks: true,
      server: { deps: { external: [/\/dist\//] } },
    },
  }
}

/**
 * Tests import `src/x.ts` and run what is built of it, as packages, threads and child processes do:
 * one copy of each module.
 */
const compiledSources: Vite.Plugin = {
  name: 'compiled-sources',
  enforce: 'pre',
  async resolveId(source, importer, options) {
    const found = await this.resolve(source, importer, { ...options, skipSelf: true })
    const [, dir, path] = /^(.*)\/src\/(.*)\.ts$/.exec(found?.id ?? '') ?? []
    const built = `${dir}/dist/${path}.js`
    return dir !== undefined && existsSync(built) ? built : found
  },
}
