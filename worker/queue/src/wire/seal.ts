/**
 * Sealing: AES-256-GCM (NIST SP 800-38D) under a key derived for each id by HMAC-SHA256 (NIST SP
 * 800-108). All values that must not be swapped are bound as associated data.
 */
import { createCipheriv, createDecipheriv, createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import type { KeyList } from '@spillway/common/secrets'
import { StacklessError } from '../errors.js'

export const SEAL_KEYS = 'SPILLWAY_SEAL_KEYS'

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Plaintexts are padded to a multiple of this, which hides lengths and the kind of a result. */
const PADDED_BYTES = 256

/** A value was forged, swapped, replayed or damaged, or its key is not in the keyring. */
export class SealError extends StacklessError {
  override readonly name = 'SealError'
  readonly code = 'seal_broken'
}

/** What a key is derived for. */
interface KeyContext {
  purpose:
    | ('request' | 'result' | 'fingerprint' | 'ticket' | 'application-ticket' | 'mail')
    | ('account' | 'deleted-address' | 'device' | 'refresh-token')
  /** The id of the job, mail or other object. */
  id: string
}

/** The bindings of a sealed value: it opens only for the same purpose, id and further values. */
export interface SealContext extends KeyContext {
  /** Further values that must be the same at both ends. */
  bind?: readonly (string | number)[]
}

/** Keys by name. The first key seals; all keys open. */
export class Keyring implements KeyList {
  readonly setting = SEAL_KEYS
  #keys: ReadonlyMap<string, KeyObject>
  #sealing: [kid: string, key: KeyObject]

  constructor(sealing: [kid: string, key: KeyObject], others: [kid: string, key: KeyObject][]) {
    this.#keys = new Map([sealing, ...others])
    this.#sealing = sealing
  }

  kids(): string[] {
    return [...this.#keys.keys()]
  }

  /** Takes another list of keys, checked as at the start. A new key needs a new name. */
  replace(text: string): void {
    refuseGuessableKeys(SEAL_KEYS, text)
    const other = parseKeyring(text)
    for (const [kid, key] of other.#keys)
      if (this.#keys.get(kid)?.equals(key) === false)
        throw new Error(`${SEAL_KEYS} has another key as "${kid}" than before`)
    this.#keys = other.#keys
    this.#sealing = other.#sealing
  }

  /**
   * Seals any JSON value under the first key.
   *
   * @param paddedBytes the plaintext is padded to a multiple of it [256]
   */
  seal(context: SealContext, value: unknown, paddedBytes = PADDED_BYTES): string {
    const [kid, key] = this.#sealing
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', deriveKey(key, context), nonce)
    cipher.setAAD(associatedData(kid, context))
    const parts = [nonce, cipher.update(pad(JSON.stringify(value), paddedBytes)), cipher.final(), cipher.getAuthTag()]
    return `${kid}.${Buffer.concat(parts).toString('base64url')}`
  }

  /** Opens a value by its key. Throws {@link SealError} for any other context. */
  open(context: SealContext, sealed: string): unknown {
    const dot = sealed.indexOf('.')
    const kid = sealed.slice(0, Math.max(dot, 0))
    const key = this.#keys.get(kid)
    if (key === undefined) throw new SealError('sealed under an unknown key')
    const encoded = sealed.slice(dot + 1)
    const bytes = Buffer.from(encoded, 'base64url')
    if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new SealError('too short to be sealed')
    // Node's decoder ignores invalid characters and stray bits: without this check, a value would
    // have many encodings.
    if (bytes.toString('base64url') !== encoded) throw new SealError('not encoded as sealed values are')
    const decipher = createDecipheriv('aes-256-gcm', deriveKey(key, context), bytes.subarray(0, NONCE_BYTES))
    decipher.setAAD(associatedData(kid, context))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    try {
      const plain = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
      return JSON.parse(plain.toString('utf8'))
    } catch {
      throw new SealError('does not open')
    }
  }

  /** Codes of an id (HMAC-SHA256) for signed texts: one for each key, in the order of the keys. */
  macs(context: KeyContext): [Buffer, ...Buffer[]] {
    const [, ...others] = this.#keys.values()
    return [deriveKey(this.#sealing[1], context), ...others.map((key) => deriveKey(key, context))]
  }
}

/**
 * Parses a keyring: `kid:base64` of 32 bytes, comma-separated. To rotate, put the new key second
 * everywhere, then first, then drop the old one. Throws an error for operators.
 */
export function parseKeyring(text: string): Keyring {
  const keys = new Map<string, KeyObject>()
  for (const { name, key } of parseKeyList(SEAL_KEYS, text)) {
    if (keys.has(name)) throw new Error(`${SEAL_KEYS} names the key "${name}" twice`)
    keys.set(name, createSecretKey(key))
  }
  const [sealing, ...others] = keys
  if (sealing === undefined) throw new Error(`${SEAL_KEYS} holds no key`)
  return new Keyring(sealing, others)
}

/**
 * Derives a key for each id and purpose: random 96-bit nonces stay far below the limit of uses per
 * key. One block of the KDF in counter mode (SP 800-108, 4.1): counter, label, zero, context,
 * length in bits. It takes a quarter of HKDF's time: random keys need no extraction step.
 */
function deriveKey(key: KeyObject, { purpose, id }: KeyContext): Buffer {
  return createHmac('sha256', key).update(`\x00\x00\x00\x01spillway/1/${purpose}\x00${id}\x00\x00\x01\x00`).digest()
}

function associatedData(kid: string, context: SealContext): Buffer {
  return Buffer.from(JSON.stringify([kid, context.purpose, context.id, ...(context.bind ?? [])]))
}

/** Pads with blanks, which JSON ignores at the end: no unpadding is needed. */
function pad(json: string, paddedBytes: number): Buffer {
  const length = Buffer.byteLength(json)
  const padded = Buffer.alloc(Math.ceil(length / paddedBytes) * paddedBytes, ' ')
  padded.write(json)
  return padded
}

// Lists of secret keys in environment variables: `name:base64` of 32 bytes each, comma-separated.

const KEY_BYTES = 32

/** Repeated patterns of 16 bytes have fewer. So has one random key in 10^14. */
const MIN_DISTINCT_BYTES = 17

interface NamedKey {
  name: string
  key: Buffer
}

/** Parses a list, in order. Errors for operators name the variable, and no part of a key. */
export function parseKeyList(variable: string, text: string): NamedKey[] {
  return text.split(',').map((entry) => {
    const [, name, encoded] = /^\s*([\w-]{1,32}):([A-Za-z0-9+/_=-]+)\s*$/.exec(entry) ?? []
    const key = Buffer.from(encoded ?? '', 'base64')
    if (name === undefined || key.length !== KEY_BYTES)
      throw new Error(`${variable} must be a comma-separated list of kid:base64, each of ${KEY_BYTES} bytes`)
    return { name, key }
  })
}

/** Throws an error for operators if a key is text, a repetition or a sequence. */
export function refuseGuessableKeys(variable: string, text: string): void {
  if (parseKeyList(variable, text).some(({ key }) => isGuessable(key))) {
    throw new Error(
      `${variable} holds a key that can be guessed (text, a repetition or a sequence): make one by "openssl rand -base64 32"`,
    )
  }
}

/** Two random keys in 10^14 consist of printable text. */
function isGuessable(key: Uint8Array): boolean {
  const steps = [...key].map((byte, n) => (byte - (key[n - 1] ?? 0)) & 0xff).slice(1)
  const isText = key.every((byte) => byte >= 0x20 && byte < 0x7f)
  return isText || [key, steps].some((values) => new Set(values).size < MIN_DISTINCT_BYTES)
}
