// Finds programs of this system.
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The first of these programs that the PATH, or the folders given instead, has. */
export function onPath(names: string[], folders = (process.env.PATH ?? '').split(delimiter)): string | undefined {
  const isProgram = (file: string): boolean => {
    try {
      accessSync(file, constants.X_OK)
      return true
    } catch {
      return false
    }
  }
  return names.flatMap((name) => folders.filter(Boolean).map((folder) => join(folder, name))).find(isProgram)
}
