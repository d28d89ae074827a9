// Installs a recipe with the packed client, as its users would, before the change and after it.
import { copyFile, cp, mkdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { run } from '@spillway/infra/processes/run'
import { applyChange } from './change.ts'
import { type Recipe, recipesDir } from './recipes.ts'

/** What running a recipe in its own folder leaves there. */
const LEFT = ['node_modules', 'dist', '.next', 'package-lock.json', 'users.json']
const { PATH, HOME, NODE_EXTRA_CA_CERTS } = process.env
/** Without this repository's variables. */
const env = { PATH, HOME, NODE_EXTRA_CA_CERTS, NEXT_TELEMETRY_DISABLED: '1' }

export interface Installed {
  /** Folders of the two versions, which share what is installed. */
  before: string
  after: string
}

/** Into a folder that is not there yet. */
export async function installRecipe({ name, isBuilt }: Recipe, tarball: string, dir: string): Promise<Installed> {
  const source = join(recipesDir, name)
  await mkdir(dir)
  await copyFile(join(source, 'package.json'), join(dir, 'package.json'))
  await run('npm', ['install', '--no-audit', '--no-fund', tarball], { cwd: dir, env })
  const installed = { before: join(dir, 'before'), after: join(dir, 'after') }
  const folders = Object.values(installed)
  const filter = (path: string) => !LEFT.includes(basename(path))
  for (const folder of folders) await cp(source, folder, { recursive: true, filter })
  await applyChange(name, installed.after)
  if (isBuilt) for (const folder of folders) await run('npm', ['run', 'build'], { cwd: folder, env })
  return installed
}
