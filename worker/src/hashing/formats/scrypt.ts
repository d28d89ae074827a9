/** scrypt as PHC strings, Django, Werkzeug and crypt(3) write it. */
import { crypt64Digit, decodeCrypt64 } from '../methods/crypt64.js'
import { scryptReading } from './derived.js'
import type { Format } from './format.js'
import { base64Pair, crypt64Bytes, hexBytes, paddedBase64, utf8Bytes } from './texts.js'

const PHC = /^\$scrypt\$ln=(\d{1,8}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]+=*)$/
/** No memory holds a cost of this logarithm: Ory Kratos writes the cost itself. */
const LOG_COST_MAX = 40

export const phcScrypt: Format = {
  name: 'scrypt',
  makers: 'PHC strings, passlib, Ory Kratos, Zitadel',
  read(text) {
    const [, logCost = '', blockSize = '', parallelization = '', salt = '', key = ''] = PHC.exec(text) ?? []
    const cost = Number(logCost) > LOG_COST_MAX ? Number(logCost) : 2 ** Number(logCost)
    return scryptReading({ cost, blockSize, parallelization, ...base64Pair(salt, key) })
  },
}

const DJANGO = /^scrypt\$(\d{1,8})\$([^$]{1,128})\$(\d{1,3})\$(\d{1,3})\$([A-Za-z0-9+/]+=*)$/

export const djangoScrypt: Format = {
  name: 'Django scrypt',
  makers: 'Django',
  read(text) {
    const [, cost = '', salt = '', blockSize = '', parallelization = '', key = ''] = DJANGO.exec(text) ?? []
    const parts = { cost: Number(cost), blockSize, parallelization, salt: utf8Bytes(salt), key: paddedBase64(key) }
    return scryptReading({ ...parts, keyBytes: 64 })
  },
}

const WERKZEUG = /^scrypt:(\d{1,8}):(\d{1,3}):(\d{1,3})\$([^$]{1,128})\$([0-9a-f]+)$/

export const werkzeugScrypt: Format = {
  name: 'Werkzeug scrypt',
  makers: 'Werkzeug, Flask',
  read(text) {
    const [, cost = '', blockSize = '', parallelization = '', salt = '', key = ''] = WERKZEUG.exec(text) ?? []
    const parts = { cost: Number(cost), blockSize, parallelization, salt: utf8Bytes(salt), key: hexBytes(key) }
    return scryptReading({ ...parts, keyBytes: 64 })
  },
}

const CRYPT = /^\$7\$([./0-9A-Za-z])([./0-9A-Za-z]{5})([./0-9A-Za-z]{5})([^$:\n]{0,64})\$([./0-9A-Za-z]{43})$/

export const cryptScrypt: Format = {
  name: 'crypt(3) scrypt',
  makers: 'libxcrypt',
  read(text) {
    const [, logCost = '', blockSize = '', parallelization = '', salt = '', key = ''] = CRYPT.exec(text) ?? []
    const number = (digits: string) => Buffer.concat([decodeCrypt64(digits), Buffer.alloc(4)]).readUInt32LE()
    return scryptReading({
      ...{ cost: 2 ** crypt64Digit(logCost), blockSize: number(blockSize), parallelization: number(parallelization) },
      ...{ salt: utf8Bytes(salt), key: crypt64Bytes(key), keyBytes: 32 },
    })
  },
}
