// A Dockerfile as a list of stages, each a list of steps that the builder of plain folders can follow.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { UserError } from '@spillway/local/processes/command-line'
import { type Copy, DockerfileParser, type From, type Instruction } from 'dockerfile-ast'

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
