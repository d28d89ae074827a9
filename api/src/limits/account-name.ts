/** Names for accounts where neither Redis nor a ticket may hold an e-mail address. */
import { hash } from 'node:crypto'
import type { Keyring } from '@spillway/queue/queue-client'
import { normalizeEmail } from '../schemas/credentials.js'

const NAME_BYTES = 16

/** The digest of an address as addresses are compared: 22 characters. Not secret from someone who guesses addresses. */
export function accountOfEmail(email: string): string {
  return accountDigest(normalizeEmail(email))
}

/** The name of something that has no address, such as a user's id. */
export function accountDigest(text: string): string {
  return hash('sha256', text, 'buffer').subarray(0, NAME_BYTES).toString('base64url')
}

/**
 * The name of an account in Redis: keyed, so that a reader cannot try addresses. It changes with the first seal key: counts begin at 0
 * after a rotation.
 */
export function createAccountNames(keyring: Keyring): (account: string) => string {
  return (account) => keyring.macs({ purpose: 'account', id: account })[0].subarray(0, NAME_BYTES).toString('base64url')
}
