// Slows processes down to a share of a core each.
import { startProcess } from '@spillway/local/rig'
import { compiled } from '../contenders/program.ts'

/** Begins at once, and ends with `close`. Linux alone. */
export function holdToShare(pids: readonly number[], share: number): { close(): Promise<void> } {
  const program = startProcess({
    entry: compiled('measure/processor-share-program'),
    args: [String(share), ...pids.map(String)],
  })
  return {
    /** Asked to end, so that nobody stays stopped. */
    async close() {
      await program.stop()
    },
  }
}
