/** Bytes as formats write them, read strictly: undefined for what no encoder writes. */
import { decodeBase64, decodeBase64Pair } from '@spillway/queue/wire/stored-hash'
import { decodeCrypt64, encodeCrypt64 } from '../methods/digest-programs.js'

/** Hexadecimal, all of it in lower or in upper case. */
export function hexBytes(text: string): Buffer | undefined {
  return /^(?:(?:[0-9a-f]{2})+|(?:[0-9A-F]{2})+)$/.test(text) ? Buffer.from(text, 'hex') : undefined
}

export function paddedBase64(text: string): Buffer | undefined {
  const bytes = decodeBase64(text)
  return bytes?.toString('base64') === text ? bytes : undefined
}

/** Base64 with dots in place of pluses, as passlib writes it. */
export function adaptedBase64(text: string): Buffer | undefined {
  return /[+=]/.test(text) ? undefined : decodeBase64(text.replaceAll('.', '+'))
}

/** A salt and a key in base64, both of them padded or both not. */
export function base64Pair(salt: string, key: string): { salt?: Buffer; key?: Buffer } {
  const [saltBytes, keyBytes] = decodeBase64Pair(salt, key) ?? []
  return saltBytes === undefined || keyBytes === undefined ? {} : { salt: saltBytes, key: keyBytes }
}

/** The same as passlib writes it, or in usual base64. */
export function adaptedPair(salt: string, key: string): { salt?: Buffer; key?: Buffer } {
  if (/[+=]/.test(salt + key)) return base64Pair(salt, key)
  return base64Pair(salt.replaceAll('.', '+'), key.replaceAll('.', '+'))
}

export function urlBase64(text: string): Buffer | undefined {
  return decodeBase64(text.replaceAll('-', '+').replaceAll('_', '/'))
}

/** crypt(3)'s base64. */
export function crypt64Bytes(text: string): Buffer | undefined {
  const bytes = decodeCrypt64(text)
  return encodeCrypt64(bytes) === text ? bytes : undefined
}

/** Bytes that are text. */
export function utf8Bytes(text: string): Buffer {
  return Buffer.from(text)
}
