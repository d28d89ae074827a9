/**
 * What a call costs in relation to others, before it is hashed: admission must not take a bcrypt hash of cost 12 for the argon2id hash of the
 * policy, of which twenty are done in the same time.
 */
import type { BesideRequest } from '../../protocol/beside.js'
import type { HashPolicy } from '../../protocol/policy.js'
import { parseSetting, type Setting } from '../../protocol/setting.js'
import { parseStoredHash, type StoredHash } from '../../protocol/stored-hash.js'

/** The processor time of a round of bcrypt, and of a KiB in a pass of argon2, in milliseconds on a processor of 2022. Their ratio matters. */
const BCRYPT_ROUND_MS = 0.05
const ARGON2_KIB_MS = 0.000_22

/** In milliseconds of that processor; of formats whose cost is not known here, as of the policy. */
export function costOf(request: BesideRequest['request'], policy: HashPolicy): number {
  const wanted = 'exact' in request && request.exact !== undefined ? parseSetting(request.exact.setting) : undefined
  const stored =
    'storedHash' in request && request.storedHash !== null ? parseStoredHash(request.storedHash) : undefined
  return timeOf(wanted ?? stored ?? request.policy ?? policy)
}

function timeOf(hash: HashPolicy | Setting | StoredHash): number {
  if (hash.algorithm === 'bcrypt') return BCRYPT_ROUND_MS * 2 ** hash.cost
  return ARGON2_KIB_MS * hash.memoryKib * hash.time
}
