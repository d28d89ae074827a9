/** How far the line has come: one text for everybody, made once a second; any cache may keep it. */
import type { Keyring, PasswordClient } from '@spillway/queue/queue-client'
import type { FromSchema } from 'json-schema-to-ts'
import type { LineBody } from '../schemas/bodies.js'

/** How long an answer is good, in seconds. */
export const GOOD_FOR_S = 2
/** How long one is given out, in milliseconds. */
const MADE_EVERY_MS = 1_000
const NAME_BYTES = 6

export class LineDocument {
  readonly #passwords: Pick<PasswordClient, 'redis'>
  readonly #keyring: Keyring
  readonly #now: () => number
  #made: { text: string; etag: string; atMs: number } | undefined

  constructor(passwords: Pick<PasswordClient, 'redis'>, keyring: Keyring, now = () => performance.now()) {
    this.#passwords = passwords
    this.#keyring = keyring
    this.#now = now
  }

  /** Names a Redis server's line by a seal key: nobody can guess the server's address from it. */
  nameOf(id: string): string {
    return this.#keyring.macs({ purpose: 'line', id })[0].subarray(0, NAME_BYTES).toString('base64url')
  }

  read(): { text: string; etag: string } {
    const atMs = this.#now()
    if (this.#made === undefined || atMs - this.#made.atMs >= MADE_EVERY_MS) this.#made = { ...this.#make(), atMs }
    return this.#made
  }

  #make(): { text: string; etag: string } {
    const lines = this.#passwords.redis.map(({ id, line }) => ({ name: this.nameOf(id), ...line() }))
    const paused = lines.flatMap((line) => (line.paused ? [line.name] : []))
    const body: FromSchema<typeof LineBody> = {
      serving: Object.fromEntries(lines.map(({ name, serving }) => [name, serving])),
      rate: Object.fromEntries(lines.map(({ name, perSecond }) => [name, Math.round(perSecond * 10) / 10])),
      ...(paused.length > 0 ? { paused } : {}),
      until: new Date(Date.now() + GOOD_FOR_S * 1_000).toISOString(),
    }
    const stateOf = ({ serving, perSecond, paused }: (typeof lines)[number]) =>
      `${serving}-${paused ? 'paused' : Math.round(perSecond * 10)}`
    // Weak: of two answers that differ only in how long they are good.
    return { text: JSON.stringify(body), etag: `W/"${lines.map(stateOf).join('.')}"` }
  }
}
