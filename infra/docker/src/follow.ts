// Follows the steps of a stage in a plain folder that stands for the root of its file system. Steps run the programs of this system, not
// of the base image: the folder holds only the additions of the image to its base.
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UserError } from '@spillway/infra/processes/command-line'
import { run } from '@spillway/infra/processes/run'
import { type Copy, DockerfileParser, type From, type Instruction } from 'dockerfile-ast'

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

// A Dockerfile as a list of stages, each a list of steps that the builder of plain folders can follow.

export const dockerfile = fileURLToPath(new URL('../Dockerfile', import.meta.url))

export type Step =
  | { kind: 'workdir'; path: string }
  | { kind: 'env'; variables: Record<string, string> }
  | { kind: 'copy'; from: string | undefined; sources: string[]; target: string }
  | { kind: 'run'; command: string }
  | { kind: 'user'; uid: number; gid: number }
  | { kind: 'entrypoint' | 'cmd'; words: string[] }
  | { kind: 'expose'; ports: string[] }

export interface Stage {
  name: string
  /** Another stage, or an image. */
  base: string
  steps: Step[]
}

/** Reads a Dockerfile. Throws a UserError for an instruction that {@link Step} has no kind for. */
export function readRecipe(text = readFileSync(dockerfile, 'utf8')): Stage[] {
  const stages: Stage[] = []
  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    if (isFrom(instruction)) {
      stages.push({ name: instruction.getBuildStage() ?? '', base: instruction.getImage() ?? '', steps: [] })
    } else {
      const stage = stages.at(-1)
      if (stage === undefined) throw new UserError('The Dockerfile must start with FROM.')
      stage.steps.push(readStep(instruction))
    }
  }
  return stages
}

function readStep(instruction: Instruction): Step {
  const keyword = instruction.getKeyword()
  const content = instruction.getArgumentsContent() ?? ''
  const words = instruction.getArguments().map((argument) => argument.getValue())
  const [first = ''] = words
  const [uid, gid = uid] = first.split(':').map(Number)
  if (isCopy(instruction)) {
    const from = instruction.getFromFlag()?.getValue() ?? undefined
    return { kind: 'copy', from, sources: words.slice(0, -1), target: words.at(-1) ?? '.' }
  }
  if (keyword === 'WORKDIR') return { kind: 'workdir', path: first }
  if (keyword === 'ENV') return { kind: 'env', variables: Object.fromEntries(words.map(readVariable)) }
  if (keyword === 'RUN') return { kind: 'run', command: content }
  if (keyword === 'USER') return { kind: 'user', uid: uid ?? 0, gid: gid ?? 0 }
  if (keyword === 'ENTRYPOINT') return { kind: 'entrypoint', words: readList(keyword, content) }
  if (keyword === 'CMD') return { kind: 'cmd', words: readList(keyword, content) }
  if (keyword === 'EXPOSE') return { kind: 'expose', ports: words }
  throw new UserError(
    `The builder of plain folders does not know ${keyword}: teach it, or do without in the Dockerfile.`,
  )
}

function readVariable(word: string): [string, string] {
  const [, name, value] = /^(\w+)=(.*)$/.exec(word) ?? []
  if (name === undefined || value === undefined) throw new UserError(`Write ENV as NAME=value, not "${word}".`)
  return [name, value]
}

/** The form without a shell, which would stand between a process and its signals. */
function readList(keyword: string, content: string): string[] {
  if (!content.startsWith('[')) throw new UserError(`Write ${keyword} as a list of words.`)
  const words: unknown = JSON.parse(content)
  return Array.isArray(words) ? words.map(String) : []
}

function isFrom(instruction: Instruction): instruction is From {
  return instruction.getKeyword() === 'FROM'
}

function isCopy(instruction: Instruction): instruction is Copy {
  return instruction.getKeyword() === 'COPY'
}
