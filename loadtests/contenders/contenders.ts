// Everyone who takes part, in the order of the report. The first is what the others are compared with.
import type { Contender } from './contender.ts'
import { httpWorkers } from './http-workers/contender.ts'
import { inProcess } from './in-process/contender.ts'
import { piscina } from './piscina/contender.ts'
import { piscinaCluster } from './piscina-cluster/contender.ts'
import { scriptPerCompare } from './script-per-compare/contender.ts'
import { sideProcess } from './side-process/contender.ts'
import { spillway } from './spillway/contender.ts'
import { threads128 } from './threads-128/contender.ts'

export const contenders: readonly Contender[] = [
  inProcess,
  threads128,
  scriptPerCompare,
  sideProcess,
  piscina,
  piscinaCluster,
  httpWorkers,
  spillway,
]
