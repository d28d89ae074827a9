/**
 * The canary: codes of the keys that workers have, in Redis beside their capacity. By them a client notices that its own keys are others, and
 * says so, instead of waiting for verdicts that no worker can make. Who reads a code learns nothing of its key.
 */
import type { Keyring } from './seal.js'

/** The start of each code: no two keys share it by accident. */
const CODE_BYTES = 12

export function canaryKey(prefix: string): string {
  return `${prefix}:canary`
}

/** A code for each key, of the key that seals first. */
export function canaryOf(keyring: Keyring, prefix: string): string {
  const macs = keyring.macs({ purpose: 'canary', id: prefix })
  return macs.map((mac) => mac.subarray(0, CODE_BYTES).toString('base64url')).join()
}

/** Whether each of two keyrings opens what the other seals: so it is all through a rotation. */
export function areForEachOther(one: string, other: string): boolean {
  const [ours, theirs] = [one.split(','), other.split(',')]
  return ours.includes(theirs[0] ?? '') && theirs.includes(ours[0] ?? '')
}
