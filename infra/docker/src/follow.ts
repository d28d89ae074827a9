// Follows the steps of a stage in a plain folder that stands for the root of its file system. Steps run the programs of this system, not
// of the base image: the folder holds only the additions of the image to its base.
import { cpSync, mkdirSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { UserError } from '@spillway/local/processes/command-line'
import { run } from '@spillway/local/processes/run'
import type { Stage, Step } from './recipe.ts'

/** An image: its files, and how a container of it is started. */
export interface Image {
  /** Stands for the root of the file system. */
  root: string
  env: Record<string, string>
  workdir: string
  uid: number
  gid: number
  entrypoint: string[]
  cmd: string[]
  /** The ports that it listens on. */
  ports: string[]
}

export interface Context {
  /** Where COPY takes from without a stage. */
  dir: string
  /** Whether a path below it is part of the context. */
  includes(path: string): boolean
  /** The stages that have been followed so far. */
  stages: Map<string, Image>
  say(sentence: string): void
}

/** Follows all steps of a stage into a folder, which must be empty. Rejects with a UserError when a step fails. */
export async function followStage(stage: Stage, root: string, context: Context): Promise<Image> {
  mkdirSync(root, { recursive: true })
  const base = context.stages.get(stage.base)
  if (base) cpSync(base.root, root, { recursive: true, verbatimSymlinks: true })
  const image: Image = base
    ? { ...base, root, env: { ...base.env } }
    : { root, env: {}, workdir: '/', uid: 0, gid: 0, entrypoint: [], cmd: [], ports: [] }
  for (const step of stage.steps) await follow(step, image, context)
  return image
}

async function follow(step: Step, image: Image, context: Context): Promise<void> {
  switch (step.kind) {
    case 'workdir':
      image.workdir = resolve(image.workdir, step.path)
      mkdirSync(join(image.root, image.workdir), { recursive: true })
      return
    case 'env':
      Object.assign(image.env, step.variables)
      return
    case 'copy':
      return copy(step, image, context)
    case 'run':
      context.say(`RUN ${step.command}`)
      // Of this process's environment only PATH and HOME: a build must not depend on the rest.
      await run('sh', ['-c', step.command], {
        cwd: join(image.root, image.workdir),
        env: { PATH: process.env.PATH, HOME: process.env.HOME, ...image.env },
      })
      return
    case 'user':
      Object.assign(image, { uid: step.uid, gid: step.gid })
      return
    case 'entrypoint':
      // As in a Dockerfile, a new one forgets the command of the base.
      Object.assign(image, { entrypoint: step.words, cmd: [] })
      return
    case 'cmd':
      image.cmd = step.words
      return
    case 'expose':
      image.ports = [...image.ports, ...step.ports]
      return
  }
}

/** Copies the contents of a folder, or a file; into a folder where the target ends with a slash or is one. */
function copy(step: Extract<Step, { kind: 'copy' }>, image: Image, context: Context): void {
  const from = step.from === undefined ? undefined : context.stages.get(step.from)
  if (step.from !== undefined && from === undefined)
    throw new UserError(`COPY takes from ${step.from}, which is no stage.`)
  const target = join(image.root, resolve(image.workdir, step.target))
  const intoFolder = step.target.endsWith('/') || step.target === '.' || step.sources.length > 1
  for (const source of step.sources) {
    const path = join(from?.root ?? context.dir, source)
    const filter = from ? undefined : (file: string) => context.includes(file)
    const options = { recursive: true, verbatimSymlinks: true, ...(filter ? { filter } : {}) }
    const isFile = /\.[a-z]+$/.test(source)
    if (intoFolder) mkdirSync(target, { recursive: true })
    cpSync(path, intoFolder && isFile ? join(target, basename(source)) : target, options)
  }
}
