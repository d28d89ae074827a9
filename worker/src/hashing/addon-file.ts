/** Where the native engine (worker/engine) is, if there is one. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Its name in the packed client, which may have been made on another platform. With another C library than the packer's it does not load. */
export const PACKED_ADDON = `spillway.${process.platform}-${process.arch}.node`

/** Beside the programs of the packed client. */
const packed = fileURLToPath(new URL(PACKED_ADDON, import.meta.url))
/** Where it is built; the path is the same from src/ and from dist/. */
const built = fileURLToPath(new URL('../../engine/spillway.node', import.meta.url))

export const ADDON_FILE = existsSync(packed) ? packed : built
