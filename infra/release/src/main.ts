// The command `pnpm release`: makes all that is released of this commit, in a folder.
import { join, relative, resolve } from 'node:path'
import { runWithKeeper } from '@spillway/infra/processes/command'
import { parseCommandLine, UserError } from '@spillway/infra/processes/command-line'
import { defaultStateDir } from '@spillway/infra/processes/repository'
import { readSource } from './part.ts'
import { makeRelease, type PartName, parts } from './release.ts'

const names = Object.keys(parts).filter(isPart)

const usage = `pnpm release [--out DIR] [--only PART,PART...]

Makes a release of this commit: ${names.join(', ')}; SHA256SUMS and release.json.
The same commit gives the same files on the same machine.

  --out DIR     the folder, which is emptied first [.spillway/release/VERSION]
  --only PARTS  these parts [all]`

await runWithKeeper(async (keeper) => {
  const options = { out: { type: 'string' }, only: { type: 'string' } } as const
  const { values } = parseCommandLine('pnpm release', process.argv.slice(2), options)
  if (values.help) return console.log(usage)
  const source = await readSource()
  const outdir = resolve(values.out ?? join(defaultStateDir, 'release', source.version))
  if (source.changed) console.log('Files differ from the commit: this is a release to try, not one to publish.')
  const made = await makeRelease({ ...source, outdir, keeper, say: console.log }, readNames(values.only))
  for (const [name, part] of Object.entries(made)) {
    console.log(`${name}: ${'files' in part ? part.files.join(', ') : `not made, because ${part.missing}`}`)
  }
  console.log(`Spillway ${source.version} is in ${relative('.', outdir) || '.'}, its checksums in SHA256SUMS.`)
})

function readNames(only: string | undefined): PartName[] {
  if (only === undefined) return names
  const chosen = only.split(',')
  const unknown = chosen.find((name) => !isPart(name))
  if (unknown !== undefined) throw new UserError(`There is no part ${unknown}: there are ${names.join(', ')}.`)
  return names.filter((name) => chosen.includes(name))
}

function isPart(name: string): name is PartName {
  return Object.hasOwn(parts, name)
}
