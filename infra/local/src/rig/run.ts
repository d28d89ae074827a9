// The command `pnpm test`: the tests of every package on services of this run's own, ending with
// one line that counts them.
import { runWithKeeper } from '../processes/command.ts'
import { parseCommandLine } from '../processes/command-line.ts'
import { repositoryDir } from '../processes/repository.ts'
import { build, checkPlatform } from '../start/build.ts'
import { readEnvironment } from '../start/places.ts'
import { testVariables } from './namespace.ts'
import { isGreen, nothing, runTests, summary } from './runner.ts'
import { startTestServices } from './services.ts'

const help = `pnpm test [--all] [part of a path ...]

Runs the tests of all packages, on PostgreSQL and Redis servers of their own; with parts of paths, the files whose path contains one of them.

  --all   also what takes long: more services and processes, packages, other languages, releases, images, charts, load and chaos as tests
`

await runWithKeeper(async (keeper) => {
  checkPlatform()
  const options = { all: { type: 'boolean', default: false } } as const
  const { values, positionals: filters } = parseCommandLine('pnpm test', process.argv.slice(2), options, {
    allowPositionals: true,
  })
  if (values.help) return console.log(help)
  const stopped = new AbortController()
  keeper.onClosing(() => stopped.abort())
  const results = await runTests({
    root: repositoryDir,
    filters,
    all: values.all,
    signal: stopped.signal,
    async prepare(levels) {
      if (levels.size === 1 && levels.has('unit')) {
        await build(keeper)
        return { close: async () => {} }
      }
      const services = await startTestServices(keeper, readEnvironment(process.env))
      // Vitest hands the environment on to the processes of test files.
      Object.assign(process.env, testVariables(services))
      return services
    },
  })
  if (keeper.closing) return
  if (results === nothing)
    console.error(`No test file's path contains ${filters.map((part) => `"${part}"`).join(' or ')}.`)
  console.log(`\n${summary(results)}`)
  process.exitCode = isGreen(results) ? 0 : 1
})
