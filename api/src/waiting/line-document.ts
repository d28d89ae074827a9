/**
 * How far the line has come, for everybody: one small text, made at most once a second from what this gateway reads of Redis anyway. It
 * tells nothing about anyone, so that it may be kept by anything between.
 */
import type { Keyring, PasswordClient } from '@spillway/client/queue-client'
import type { FromSchema } from 'json-schema-to-ts'
import type { LineBody } from '../schemas/bodies.js'

/** How long an answer is good, in seconds. */
export const GOOD_FOR_S = 2
/** How long one is given out, in milliseconds. */
const MADE_EVERY_MS = 1_000
const NAME_BYTES = 6

export interface LineDocument {
  /** As JSON, with its entity tag. */
  read(): { text: string; etag: string }
}

/** Names the line that a Redis server keeps. A seal key makes the name, so that nobody can guess the server's address from it. */
export function createLineNames(keyring: Keyring): (id: string) => string {
  const names = new Map<string, string>()
  return (id) => {
    const name = names.get(id) ?? keyring.macs({ purpose: 'line', id })[0].subarray(0, NAME_BYTES).toString('base64url')
    names.set(id, name)
    return name
  }
}

export function createLineDocument(
  passwords: Pick<PasswordClient, 'redis'>,
  nameOf: (id: string) => string,
  now: () => number = () => performance.now(),
): LineDocument {
  let made: { text: string; etag: string; atMs: number } | undefined

  function make(atMs: number) {
    const lines = passwords.redis.map(({ id, line }) => ({ name: nameOf(id), ...line() }))
    const progress = {
      serving: Object.fromEntries(lines.map(({ name, serving }) => [name, serving])),
      rate: Object.fromEntries(lines.map(({ name, perSecond }) => [name, Math.round(perSecond * 10) / 10])),
    }
    const paused = lines.flatMap((line) => (line.paused ? [line.name] : []))
    const until = new Date(Date.now() + GOOD_FOR_S * 1_000).toISOString()
    const body: FromSchema<typeof LineBody> = { ...progress, ...(paused.length > 0 ? { paused } : {}), until }
    // Weak: of two answers that differ only in how long they are good.
    const stateOf = ({ serving, perSecond, paused }: (typeof lines)[number]) =>
      `${serving}-${paused ? 'paused' : Math.round(perSecond * 10)}`
    const etag = `W/"${lines.map(stateOf).join('.')}"`
    return { text: JSON.stringify(body), etag, atMs }
  }

  return {
    read() {
      const atMs = now()
      if (made === undefined || atMs - made.atMs >= MADE_EVERY_MS) made = make(atMs)
      return made
    },
  }
}
