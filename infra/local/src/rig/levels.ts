// The levels of tests, told by the folder of a file, and how Vitest runs each.
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { TestProjectInlineConfiguration } from 'vitest/config'
import { BaseSequencer, type InlineConfig, type TestSpecification, type Vite } from 'vitest/node'

/**
 * - `unit`: no server, no child process, simulated clocks; all in one process
 * - `service`: real PostgreSQL and Redis, one set for the run
 * - `process`: processes that are started, signalled, killed, for what README promises
 * - `all`: other processes, packages, other languages, releases, images, charts: by `pnpm test --all` alone, or by name
 */
const LEVELS = ['unit', 'service', 'process', 'all'] as const
type Level = (typeof LEVELS)[number]

/** The number of files that run side by side. Tests wait more than they compute; those of `all` compute as well. */
const PARALLEL = 3 * availableParallelism()
const WORKERS = { unit: 1, service: PARALLEL, process: PARALLEL, all: availableParallelism() } satisfies Record<
  Level,
  number
>
/** Levels of one group run side by side. */
const GROUPS = { unit: 0, process: 1, service: 1, all: 2 } satisfies Record<Level, number>
/** Only a hang takes longer. */
const HANG_MS = 120_000

function project(root: string, level: Level): TestProjectInlineConfiguration {
  return {
    plugins: [compiledSources],
    test: {
      name: level,
      root,
      include: [`**/test/${level}/**/*.test.ts`],
      exclude: ['**/node_modules/**', '**/dist/**', '**/target/**', '**/.*/**'],
      pool: 'forks',
      execArgv: ['--import', import.meta.resolve('./end-with-runner.js')],
      // What takes long may need a module to itself.
      isolate: level === 'all',
      maxWorkers: WORKERS[level],
      sequence: { groupOrder: GROUPS[level] },
      testTimeout: HANG_MS,
      hookTimeout: HANG_MS,
      restoreMocks: true,
      server: { deps: { external: [/\/dist\//] } },
    },
  }
}

/** Tests import `src/x.ts` and run what is built of it, as packages, threads and child processes do: one copy of each module. */
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

/** Begins with processes, which take longest, so that nothing long is left for the end of a run. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isFirst = ({ project }: TestSpecification): boolean => project.name === 'process'
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))]
  }
}

/** The configuration of a run of the files below a folder. Files of one level share processes and their modules. */
export function optionsFor(root: string): InlineConfig {
  return {
    root,
    watch: false,
    reporters: ['default'],
    teardownTimeout: HANG_MS,
    projects: LEVELS.map((level) => project(root, level)),
  }
}
