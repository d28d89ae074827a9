/**
 * Reads the scripts of Redis: `.lua` files in a folder `scripts`, each named with its number of
 * keys (`passOver-8.lua`), with keys, arguments and result in its header. `--- @include "name"`
 * stands for `includes/name.lua`, of the script's own folder or else of the queue's. The packed
 * client has the sources in place of this module.
 */
import { existsSync, readFileSync } from 'node:fs'

const ofQueue = new URL('../scripts/', import.meta.url)
const HEADER = /^--\[\[\n.*?^\]\]\n/gms
const INCLUDE = /^--- @include "(\w+)"\n/gm

/** The source of a script without headers, with every include once. */
export function readScript(name: string, folder = ofQueue): string {
  const included = new Set<string>()

  function expanded(file: URL): string {
    const source = readFileSync(file, 'utf8').replace(HEADER, '')
    return source.replace(INCLUDE, (_, part: string) => {
      if (included.has(part)) return ''
      included.add(part)
      const own = new URL(`includes/${part}.lua`, folder)
      return expanded(existsSync(own) ? own : new URL(`includes/${part}.lua`, ofQueue))
    })
  }

  return expanded(new URL(`${name}.lua`, folder))
}
