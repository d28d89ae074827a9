// promtool, by which rules are checked.
import { UserError } from '@spillway/infra/processes/command-line'
import { Keeper, ToolFailure } from '@spillway/infra/processes/keeper'
import { onPath } from '@spillway/infra/processes/run'
import { findProgram } from '@spillway/infra/services/apt-packages'

/** Why tests that need it are skipped, or false. */
export const skipWithoutPromtool =
  onPath(['promtool', 'apt-get']) === undefined && 'there is no promtool on the PATH, and no apt to fetch it'

/** Runs promtool in a folder, once for each list of arguments. Rejects with all that it printed when it finds a fault. */
export async function promtool(cwd: string, ...runs: string[][]): Promise<void> {
  const keeper = new Keeper()
  try {
    const program = await findProgram({ keeper, names: ['promtool'], packages: ['prometheus'], say: console.log })
    if (program === undefined)
      throw new UserError('There is no promtool here, and no apt to fetch it: put it on the PATH.')
    for (const args of runs) await keeper.run({ ...program, args, cwd })
  } catch (error) {
    throw error instanceof ToolFailure ? new Error(error.output, { cause: error }) : error
  } finally {
    await keeper.close()
  }
}
