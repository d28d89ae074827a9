// Scenarios and contenders as the command line names them.
import { UserError } from '@spillway/local/processes/command-line'

/**
 * Picks by name, or by the beginning of a name; all without a name.
 *
 * @throws {@link UserError} for an unknown name
 */
export function pickNamed<T extends { name: string }>(kind: string, all: readonly T[], names: readonly string[]) {
  if (names.length === 0) return all
  return names.flatMap((name) => {
    const exact = all.filter((one) => one.name === name)
    const found = exact.length > 0 ? exact : all.filter((one) => one.name.startsWith(name))
    if (name !== '' && found.length > 0) return found
    throw new UserError(`There is no ${kind} "${name}": choose from ${all.map((one) => one.name).join(', ')}.`)
  })
}
