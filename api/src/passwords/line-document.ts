/** How far the line has come: one text for everybody, made once a second. Any cache may keep it. */
import type { PasswordClient } from '@spillway/queue/client'
import type { FromSchema } from 'json-schema-to-ts'
import type { LineBody } from '../schemas/bodies.js'

/** How long an answer is valid, in seconds. */
export const GOOD_FOR_S = 2
/** How long a text is used, in milliseconds. */
const MADE_EVERY_MS = 1_000

export class LineDocument {
  readonly #passwords: PasswordClient
  readonly #now: () => number
  #made: { text: string; etag: string; atMs: number } | undefined

  constructor(passwords: PasswordClient, now = () => performance.now()) {
    this.#passwords = passwords
    this.#now = now
  }

  read(): { text: string; etag: string } {
    const atMs = this.#now()
    if (this.#made === undefined || atMs - this.#made.atMs >= MADE_EVERY_MS) this.#made = { ...this.#make(), atMs }
    return this.#made
  }

  #make(): { text: string; etag: string } {
    const { serving, rate: perSecond, paused } = this.#passwords.line()
    const rate = Math.round(perSecond * 10) / 10
    const body: FromSchema<typeof LineBody> = {
      serving,
      rate,
      ...(paused ? { paused: true } : {}),
      until: new Date(Date.now() + GOOD_FOR_S * 1_000).toISOString(),
    }
    // Weak: two answers with one tag may differ in how long they are valid.
    return { text: JSON.stringify(body), etag: `W/"${serving}-${paused ? 'paused' : rate}"` }
  }
}
