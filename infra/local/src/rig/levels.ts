// The levels of tests, told by the folder of a file, and how Vitest runs each.
import { existsSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { TestProjectInlineConfiguration } from 'vitest/config'
import { BaseSequencer, type InlineConfig, type TestSpecification, type Vite } from 'vitest/node'

/**
 * - `unit`: no server, no child process, simulated clocks; in one process, or among service tests
 * - `service`: real PostgreSQL and Redis, one set for the run
 * - `process`: processes that are started, signalled, killed, for what README promises
 * - `all`: other processes, packages, other languages, releases, images, charts: by `pnpm test
 *   --all` alone, or by name
 */
type Level = 'unit' | 'service' | 'process' | 'all'

/**
 * What Vitest calls a project: files that share processes. Each process runs one file after the
 * other, and has loaded most modules for the first.
 */
interface Group {
  levels: readonly [Level, ...Level[]]
  /** The number of files that run side by side. */
  workers: number
}

/** Groups run one after the other. All tests but units mostly wait. */
const groups: readonly Group[] = [
  { levels: ['unit'], workers: 1 },
  { levels: ['service', 'process', 'all'], workers: 3 * availableParallelism() },
]
/** Processes of test files end with the runner, even if it is killed and a test goes on for ever. */
const END_WITH_RUNNER = `data:text/javascript,process.once('disconnect', () => process.exit(1))`
/** Only a hang takes longer. */
const HANG_MS = 120_000

function project(root: string, { levels, workers }: Group, groupOrder: number): TestProjectInlineConfiguration {
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
      maxWorkers: workers,
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

/** Whether a file belongs to a run that asks neither for all levels nor for names. */
export function isUsual({ moduleId }: TestSpecification): boolean {
  return levelOf(moduleId) !== 'all'
}

const slowestFirst: readonly Level[] = ['all', 'process', 'service', 'unit']

/** By the innermost folder of tests: a checkout may be below another. */
function levelOf(file: string): Level | undefined {
  const [, level] = /.*\/test\/(\w+)\//.exec(file) ?? []
  return slowestFirst.find((known) => known === level)
}

/** Begins with slow levels, then long files: nothing long is left for the end of a run. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const bytes = new Map(files.map((file) => [file, statSync(file.moduleId).size]))
    const sizeOf = (file: TestSpecification): number => bytes.get(file) ?? 0
    const sorted = (await super.sort(files)).toSorted((one, other) => sizeOf(other) - sizeOf(one))
    return slowestFirst.flatMap((level) => sorted.filter(({ moduleId }) => levelOf(moduleId) === level))
  }
}

/** Configures a run of the files below a folder. Files of one level share processes and modules. */
export function optionsFor(root: string): InlineConfig {
  return {
    root,
    watch: false,
    reporters: ['default'],
    teardownTimeout: HANG_MS,
    projects: groups.map((group, order) => project(root, group, order)),
  }
}
