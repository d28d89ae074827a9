/** Hashing in this process for tests: on libuv's threads, by the same code. */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { BesideCancellation, BesideMessage, BesideRequest, BesideSettings } from '@spillway/queue/wire/beside'
import type { HashingProcess, HashingProcessOptions } from './hashing-process.js'

/** Stands beside the program of the process. */
const FILE = './hashing-in-place.cjs'

/** What the file exports. */
interface InPlace {
  open(settings: BesideSettings, say: (message: BesideMessage) => void): Promise<Take | undefined>
}
type Take = (message: BesideRequest | BesideCancellation) => void

/** @param program stands beside it */
export function loadInPlace(program: URL): InPlace {
  return createRequire(import.meta.url)(fileURLToPath(new URL(FILE, program)))
}

/** Stands in for a process. It does not keep this one alive. */
export class HashingInPlace implements HashingProcess {
  readonly #opening: Promise<Take | undefined>
  #isClosed = false

  constructor({ program, settings, told, ended }: HashingProcessOptions) {
    this.#opening = this.#open(program, settings, told)
    this.#opening.then(
      (take) => take ?? ended('nothing hashes in this process'),
      (error: unknown) => ended(error instanceof Error ? error.message : String(error)),
    )
  }

  async #open(program: URL, settings: BesideSettings, told: HashingProcessOptions['told']): Promise<Take | undefined> {
    return await loadInPlace(program).open(settings, (message) => {
      if (!this.#isClosed && message.kind !== 'alive') told(message)
    })
  }

  send(message: BesideRequest | BesideCancellation): void {
    this.#opening.then((take) => take?.(message)).catch(() => undefined)
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }
}
