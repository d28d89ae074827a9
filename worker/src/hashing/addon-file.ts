/** Where the native engine (worker/engine) is, if there is one. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const platform = `${process.platform}-${process.arch}`

/** Its name in the packed client, which may have been made on another platform. With another C library than the packer's it does not load. */
export const PACKED_ADDON = `spillway.${platform}.node`

/** Packages that hold nothing but the engine. On Linux there is one for each C library, and package managers refuse the other one. */
export const ENGINE_PACKAGES = (process.platform === 'linux' ? ['-gnu', '-musl'] : ['']).map(
  (library) => `@spillway/engine-${platform}${library}`,
)

/** Beside the programs of the packed client. */
const packed = fileURLToPath(new URL(PACKED_ADDON, import.meta.url))
/** Where it is built; the path is the same from src/ and from dist/. */
const built = fileURLToPath(new URL('../../engine/spillway.node', import.meta.url))

export const ADDON_FILE = installed() ?? (existsSync(packed) ? packed : built)

/** Someone who installed one of the packages wants that one. */
function installed(): string | undefined {
  const { resolve } = createRequire(import.meta.url)
  for (const name of ENGINE_PACKAGES) {
    try {
      return resolve(name)
    } catch {
      // It is not installed.
    }
  }
  return undefined
}
