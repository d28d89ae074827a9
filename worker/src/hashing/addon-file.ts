/** Where the native engine (worker/engine) is, if there is one. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const platform = `${process.platform}-${process.arch}`

/** Its name in the packed client, which may have been made on another platform. */
export const PACKED_ADDON = `spillway.${platform}.node`

/** Packages of the engine alone. On Linux there is one for each C library. */
export const ENGINE_PACKAGES = (process.platform === 'linux' ? ['-gnu', '-musl'] : ['']).map(
  (library) => `@spillway/engine-${platform}${library}`,
)

const beside = (path: string) => fileURLToPath(new URL(path, import.meta.url))
/** Where it is built; the path is the same from src/ and from dist/. */
const built = beside('../../engine/spillway.node')

/** All that exist, in the order of trying: an installed package, the packed one, a built one. */
export const ADDON_FILES = [...installed(), beside(PACKED_ADDON), built].filter(existsSync)

/** The file that is tried first, or where it would be built. */
export const ADDON_FILE = ADDON_FILES[0] ?? built

/** How to have one: it is built only where its sources are. */
export const HOW_TO_HAVE = existsSync(beside('../../engine/Cargo.toml'))
  ? 'with cargo, pnpm start builds worker/engine'
  : `${ENGINE_PACKAGES.join(' or ')} of the same release has worker/engine`

function installed(): string[] {
  const { resolve } = createRequire(import.meta.url)
  return ENGINE_PACKAGES.flatMap((name) => {
    try {
      return [resolve(name)]
    } catch {
      // It is not installed.
      return []
    }
  })
}

/** The version of this package, which an engine must have too. */
export function ownVersion(): string {
  // In the packed client package.json is beside the programs.
  const file = [beside('package.json'), beside('../../package.json')].find(existsSync)
  if (file === undefined) throw new Error('the package has no package.json')
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return version
}
