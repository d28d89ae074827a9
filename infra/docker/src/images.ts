// The images as plain folders, built by the steps of the Dockerfile.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { UserError } from '@spillway/infra/processes/command-line'
import { defaultStateDir, repositoryDir } from '@spillway/infra/processes/repository'
import { onPath } from '@spillway/infra/processes/run'
import { type Context, dockerfile, followStage, type Image, readRecipe, type Stage } from './follow.ts'

/** A stage that is shipped. */
export type Target = 'gateway' | 'worker'

const dir = join(defaultStateDir, 'images')
const recordOf = (version: string): string => join(dir, `${version}.json`)

const ignored = await readFile(`${dockerfile}.dockerignore`, 'utf8')

/** Whether a path of the checkout is part of the build context, by the few forms that the .dockerignore uses. */
export function isInContext(path: string): boolean {
  const parts = relative(repositoryDir, path).split('/')
  return !ignored.split('\n').some((pattern) => {
    if (pattern.startsWith('**/*.')) return parts.at(-1)?.endsWith(pattern.slice(4))
    if (pattern.startsWith('**/')) return parts.join('/').match(new RegExp(`(^|/)${pattern.slice(3)}(/|$)`)) !== null
    return pattern !== '' && parts[0] === pattern
  })
}

/** The images of this very source, if they have been built. */
export async function findImages(): Promise<Record<Target, Image> | undefined> {
  const record = recordOf(await sourceVersion(readRecipe()))
  return existsSync(record) ? JSON.parse(await readFile(record, 'utf8')) : undefined
}

/** Builds the images unless this very source has been built before. `say` prints each step that takes long. */
export async function buildImages(say: (sentence: string) => void): Promise<Record<Target, Image>> {
  const found = await findImages()
  if (found) return found
  const recipe = readRecipe()
  const version = await sourceVersion(recipe)
  // One at a time is kept: an image is 100 MB and more.
  await rm(dir, { recursive: true, force: true })
  await mkdir(dir, { recursive: true })
  const context: Context = { dir: repositoryDir, includes: isInContext, stages: new Map(), say }
  for (const stage of recipe) {
    const root = join(dir, version, stage.name)
    const left = stage.name === 'engine' && onPath(['cargo']) === undefined
    if (left) say('No cargo here: the image of the worker is without the native engine, and hashes with packages.')
    context.stages.set(stage.name, left ? await emptyStage(root) : await followStage(stage, root, context))
  }
  const images = { gateway: imageOf('gateway', context), worker: imageOf('worker', context) }
  for (const stage of ['build', 'engine']) await rm(join(dir, version, stage), { recursive: true, force: true })
  const record = recordOf(version)
  await writeFile(`${record}.partial`, JSON.stringify(images))
  await rename(`${record}.partial`, record)
  return images
}

/** In place of a stage that cannot be followed here: an empty folder is copied from it. */
async function emptyStage(root: string): Promise<Image> {
  await mkdir(join(root, 'out/engine'), { recursive: true })
  return { root, env: {}, workdir: '/', uid: 0, gid: 0, entrypoint: [], cmd: [], ports: [] }
}

function imageOf(target: Target, { stages }: Context): Image {
  const image = stages.get(target)
  if (image === undefined) throw new UserError(`The Dockerfile has no stage ${target}.`)
  return image
}

/** A name for the steps and all files that they copy from the checkout. */
async function sourceVersion(recipe: Stage[]): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(recipe))
  const copied = recipe.flatMap(({ steps }) => steps).filter((step) => step.kind === 'copy' && step.from === undefined)
  for (const source of copied.flatMap((step) => (step.kind === 'copy' ? step.sources : []))) {
    for (const file of await filesBelow(join(repositoryDir, source))) hash.update(file).update(await readFile(file))
  }
  return hash.digest('hex').slice(0, 12)
}

async function filesBelow(path: string): Promise<string[]> {
  if (!isInContext(path)) return []
  const entries = await readdir(path, { withFileTypes: true }).catch(() => undefined)
  if (entries === undefined) return [path]
  const names = entries.map(({ name }) => name).sort()
  return (await Promise.all(names.map((name) => filesBelow(join(path, name))))).flat()
}
