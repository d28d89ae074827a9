/** scrypt as PHC strings, Django, Werkzeug and crypt(3) write it. */
import { crypt64Digit, decodeCrypt64 } from '../methods/crypt64.js'
import { scryptRecipe } from './derived.js'
import { formatOf } from './format.js'
import { base64Pair, crypt64Bytes, hexBytes, paddedBase64, utf8Bytes } from './texts.js'

/** No memory holds a cost of this logarithm: Ory Kratos writes the cost itself. */
const LOG_COST_MAX = 40

export const phcScrypt = formatOf(
  'scrypt',
  'PHC strings, passlib, Ory Kratos, Zitadel',
  /^\$scrypt\$ln=(\d{1,8}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]+=*)$/,
  ([logCost, blockSize, parallelization, salt, key]) => {
    const cost = Number(logCost) > LOG_COST_MAX ? Number(logCost) : 2 ** Number(logCost)
    return scryptRecipe({ cost, blockSize, parallelization, ...base64Pair(salt, key) })
  },
)

export const djangoScrypt = formatOf(
  'Django scrypt',
  'Django',
  /^scrypt\$(\d{1,8})\$([^$]{1,128})\$(\d{1,3})\$(\d{1,3})\$([A-Za-z0-9+/]+=*)$/,
  ([cost, salt, blockSize, parallelization, key]) => {
    const parts = { blockSize, parallelization, salt: utf8Bytes(salt), key: paddedBase64(key) }
    return scryptRecipe({ cost: Number(cost), ...parts, keyBytes: 64 })
  },
)

export const werkzeugScrypt = formatOf(
  'Werkzeug scrypt',
  'Werkzeug, Flask',
  /^scrypt:(\d{1,8}):(\d{1,3}):(\d{1,3})\$([^$]{1,128})\$([0-9a-f]+)$/,
  ([cost, blockSize, parallelization, salt, key]) => {
    const parts = { blockSize, parallelization, salt: utf8Bytes(salt), key: hexBytes(key) }
    return scryptRecipe({ cost: Number(cost), ...parts, keyBytes: 64 })
  },
)

export const cryptScrypt = formatOf(
  'crypt(3) scrypt',
  'libxcrypt',
  /^\$7\$([./0-9A-Za-z])([./0-9A-Za-z]{5})([./0-9A-Za-z]{5})([^$:\n]{0,64})\$([./0-9A-Za-z]{43})$/,
  ([logCost, blockSize, parallelization, salt, key]) => {
    const number = (digits: string) => Buffer.concat([decodeCrypt64(digits), Buffer.alloc(4)]).readUInt32LE()
    return scryptRecipe({
      ...{ cost: 2 ** crypt64Digit(logCost), blockSize: number(blockSize), parallelization: number(parallelization) },
      ...{ salt: utf8Bytes(salt), key: crypt64Bytes(key), keyBytes: 32 },
    })
  },
)
