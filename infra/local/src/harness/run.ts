// `pnpm test [--all] [NAME ...]`: Vitest on the files whose path contains one of the names; without names, on all but those that
// take long. `npx vitest run` does the same by Vitest's own options.
import { startVitest } from 'vitest/node'
import { runCommand } from '../processes/command.ts'
import { parseCommandLine } from '../processes/command-line.ts'

const help = `pnpm test [--all] [part of a path ...]

Runs the tests of all packages, on PostgreSQL and Redis servers of their own; with parts of paths, the files whose path contains one of them.

  --all   also what takes long: packages, other languages, releases, images, charts
`

await runCommand(async () => {
  const options = { all: { type: 'boolean', default: false } } as const
  const { values, positionals: names } = parseCommandLine('pnpm test', process.argv.slice(2), options, {
    allowPositionals: true,
  })
  if (values.help) return console.log(help)
  const chosen = values.all || names.length > 0 ? {} : { project: ['!all'] }
  const vitest = await startVitest('test', names, { watch: false, ...chosen })
  await vitest.exit()
})
