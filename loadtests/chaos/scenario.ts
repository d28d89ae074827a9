// What a scenario is: one promise, and a run against real processes that keeps or breaks it.
import type { Findings } from './findings.ts'
import type { Stage } from './stage/stage.ts'

export interface Scenario {
  name: string
  /** What is promised, in one sentence. */
  promise: string
  /** For the progress line. */
  estimatedS: number
  /** Starts what it needs and ends it again. */
  run(stage: Stage): Promise<Findings>
}
