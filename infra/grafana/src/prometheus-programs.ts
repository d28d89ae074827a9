// Prometheus and its promtool: from the PATH, otherwise from Debian's packages, unpacked into the ignored folder.

import type { Keeper } from '@spillway/local/processes/keeper'
import { programsDir } from '@spillway/local/processes/repository'
import { UserError } from '@spillway/local/processes/user-error'
import { type AptProgram, aptProgram, isUnpacked } from '@spillway/local/services/apt-packages'
import { onPath } from '@spillway/local/services/on-path'

const NAME = 'prometheus'

/** Finds one of the two, fetching both where needed. Rejects with a UserError that says the way out. */
export async function prometheusProgram(keeper: Keeper, name: 'prometheus' | 'promtool'): Promise<AptProgram> {
  const installed = onPath([name])
  if (installed !== undefined) return { command: installed, env: {} }
  const fetched = await aptProgram({
    keeper,
    programsDir,
    name: NAME,
    packages: ['prometheus'],
    commands: [name],
    announce: () => console.log('No Prometheus on the PATH: fetching one with apt-get into the ignored folder.'),
  })
  if (fetched === undefined)
    throw new UserError(`There is no ${name} here, and no apt to fetch it: put it on the PATH.`)
  return fetched
}

/** Whether both can be had without fetching anything. */
export function havePrometheus(): boolean {
  return onPath(['prometheus']) !== undefined || isUnpacked(programsDir, NAME)
}
