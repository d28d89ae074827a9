// The recipes, installed with the packed client as their users would, before the change that
// README.md shows and after it.
import { copyFile, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '@spillway/infra/processes/run'

export interface Recipe {
  /** Its folder. */
  name: string
  /** What Node runs in the folder of a version, with arguments. */
  start: readonly [entry: string, ...args: string[]]
  /** Whether it is compiled first, by `npm run build`. */
  isBuilt: boolean
  /** Whether it is installed in a few seconds, so that `pnpm test --all` can do it. */
  isLight: boolean
  /** Where users register and log in. */
  paths: { register: string; login: string }
}

const own = { register: '/users', login: '/login' }
const ofBetterAuth = { register: '/api/auth/sign-up/email', login: '/api/auth/sign-in/email' }

export const recipes: readonly Recipe[] = [
  { name: 'express', start: ['app.js'], isBuilt: false, isLight: true, paths: own },
  { name: 'fastify', start: ['app.js'], isBuilt: false, isLight: true, paths: own },
  { name: 'nestjs', start: ['dist/main.js'], isBuilt: true, isLight: true, paths: own },
  { name: 'nextjs', start: ['../node_modules/next/dist/bin/next', 'start'], isBuilt: true, isLight: false, paths: own },
  { name: 'better-auth', start: ['server.js'], isBuilt: false, isLight: false, paths: ofBetterAuth },
]

const recipesDir = fileURLToPath(new URL('../../recipes', import.meta.url))
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

/**
 * Applies what README.md says of a recipe to a copy of it. Of each file (`--- express/app.js`) it
 * has the lines that go (`-`), that come (`+`) and that stay between them, `@@` between places.
 * Throws for lines that are not there exactly once.
 */
async function applyChange(recipe: string, folder: string): Promise<void> {
  const readme = await readFile(join(recipesDir, 'README.md'), 'utf8')
  const diffs = [...readme.matchAll(/^```diff\n(.*?)^```$/gms)].map(([, diff = '']) => diff)
  const files = diffs.flatMap((diff) => diff.split(/^--- /m)).filter((part) => part.startsWith(`${recipe}/`))
  if (files.length === 0) throw new Error(`README.md shows no change of ${recipe}`)
  for (const part of files) {
    const [name = '', ...lines] = part.trimEnd().split('\n')
    const file = join(folder, name.slice(recipe.length + 1))
    await writeFile(file, changed(await readFile(file, 'utf8'), lines.join('\n').split(/^@@\n/m), name))
  }
}

function changed(text: string, places: readonly string[], name: string): string {
  return places.reduce((current, place) => {
    const parts = current.split(side(place, '-'))
    if (parts.length !== 2) throw new Error(`README.md changes what is not in ${name} exactly once:\n${place}`)
    return parts.join(side(place, '+'))
  }, text)
}

/** The lines of one side, and those of both. */
function side(place: string, sign: '-' | '+'): string {
  const lines = place.trimEnd().split('\n')
  const kept = lines.filter((line) => line.startsWith(sign) || line.startsWith(' ') || line === '')
  return kept.map((line) => `${line.slice(1)}\n`).join('')
}
