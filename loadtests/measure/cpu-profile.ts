// Reads the profiles that Node's --cpu-prof writes, and sums up the time of an event loop by stage.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string }; children?: number[] }[]
  /** Microseconds of the monotonic clock, which all processes of a machine share. */
  startTime: number
  samples: number[]
  timeDeltas: number[]
}

/** A stage, and what the file names look like of the code that belongs to it. */
export type StageRules = Readonly<Record<string, RegExp>>

/** Time that belongs to no rule. */
export const OTHER = 'other'
const COLLECTOR = 'garbage collection'

/** The moment now on the profile's clock. */
export function profileClockUs(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}

/** The profile of a process, among those that were written to a folder; undefined if it wrote none. */
export function readProfile(dir: string, pid: number): CpuProfile | undefined {
  // CPU.<date>.<time>.<pid>.<thread>.<number>.cpuprofile; thread 0 runs the event loop.
  const file = readdirSync(dir).find((name) => name.includes(`.${pid}.0.`) && name.endsWith('.cpuprofile'))
  return file === undefined ? undefined : JSON.parse(readFileSync(join(dir, file), 'utf8'))
}

/**
 * Milliseconds by stage between two moments. A sample belongs to the first rule that fits its function or, failing that,
 * its callers from the nearest outwards: so a hash function counts for its caller.
 */
export function timeByStage(
  profile: CpuProfile,
  rules: StageRules,
  fromUs: number,
  toUs: number,
): Record<string, number> {
  const stages = stagesOfNodes(profile, rules)
  const byStage: Record<string, number> = {}
  let atUs = profile.startTime
  for (const [index, id] of profile.samples.entries()) {
    const deltaUs = profile.timeDeltas[index] ?? 0
    atUs += deltaUs
    const stage = stages.get(id)
    if (atUs < fromUs || atUs > toUs || stage === undefined) continue
    byStage[stage] = (byStage[stage] ?? 0) + deltaUs / 1_000
  }
  return byStage
}

/** The stage of every node; nodes in which nothing ran have none. */
function stagesOfNodes({ nodes }: CpuProfile, rules: StageRules): Map<number, string> {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const stages = new Map<number, string>()
  const visit = (id: number, inherited: string) => {
    const node = byId.get(id)
    if (node === undefined) return
    const { functionName, url } = node.callFrame
    const own = Object.keys(rules).find((stage) => rules[stage]?.test(url)) ?? inherited
    if (functionName === '(garbage collector)') stages.set(id, COLLECTOR)
    else if (functionName !== '(idle)') stages.set(id, own)
    for (const child of node.children ?? []) visit(child, own)
  }
  const [root] = nodes
  if (root) visit(root.id, OTHER)
  return stages
}
