// promtool, by which rules are checked.
import { UserError } from '@spillway/infra/processes/command-line'
import { Keeper, ToolFailure } from '@spillway/infra/processes/keeper'
import { onPath } from '@spillway/infra/processes/run'
import { type AptProgram, aptProgram } from '@spillway/infra/services/apt-packages'

/** On the PATH, else in Debian's package of Prometheus, unpacked into the ignored folder. */
async function promtoolProgram(keeper: Keeper): Promise<AptProgram> {
  const installed = onPath(['promtool'])
  if (installed !== undefined) return { command: installed, env: {} }
  const fetched = await aptProgram({ keeper, packages: ['prometheus'], name: 'promtool', say: console.log })
  if (fetched !== undefined) return fetched
  throw new UserError('There is no promtool here, and no apt to fetch it: put it on the PATH.')
}

/** Why tests that need it are skipped, or false. */
export const skipWithoutPromtool =
  onPath(['promtool', 'apt-get']) === undefined && 'there is no promtool on the PATH, and no apt to fetch it'

/** Runs promtool in a folder, once for each list of arguments. Rejects with all that it printed when it finds a fault. */
export async function promtool(cwd: string, ...runs: string[][]): Promise<void> {
  const keeper = new Keeper()
  try {
    const { command, env } = await promtoolProgram(keeper)
    for (const args of runs) await keeper.run({ command, args, cwd, env: { ...process.env, ...env } })
  } catch (error) {
    throw error instanceof ToolFailure ? new Error(error.output, { cause: error }) : error
  } finally {
    await keeper.close()
  }
}
