/** crypt(3) of Unix systems: SHA-2, yescrypt, MD5 and NetBSD's SHA-1. DES and Sun's MD5 are not supported. */
import { crypt64Digit } from '../methods/crypt64.js'
import type { DigestProgram } from '../methods/digest-programs.js'
import type { DigestRecipe } from '../methods/recipe.js'
import { formatOf, weak } from './format.js'
import { crypt64Bytes } from './texts.js'

const DEFAULT_ROUNDS = 5_000
const MIN_ROUNDS = 1_000

/** Drepper's, with 5,000 rounds unless the text says otherwise. */
export const shaCrypt = formatOf(
  'crypt(3) SHA',
  'Linux, PHP, passlib, Ansible, Dovecot',
  /^\$(5|6)\$(?:rounds=(\d{4,9})\$)?([^$:\n]{0,16})\$([./0-9A-Za-z]{43}|[./0-9A-Za-z]{86})$/,
  ([version, count, salt, encoded]) => {
    const [digest, length] = version === '5' ? (['sha256', 43] as const) : (['sha512', 86] as const)
    const rounds = Number(count || DEFAULT_ROUNDS)
    if (encoded.length !== length || rounds < MIN_ROUNDS) return undefined
    return ofProgram({ kind: 'sha-crypt', digest, rounds, salt }, encoded)
  },
)

/**
 * With libxcrypt's flags (`j`), one lane and no ROM. N and r are a character each: their logarithm and
 * number less one. Further parameters are not supported.
 */
export const yescrypt = formatOf(
  'crypt(3) yescrypt',
  'Debian, Fedora and Ubuntu since 2021',
  /^\$y\$j([./0-9A-Z])([./0-9A-Z])\$([./0-9A-Za-z]{2,86})\$([./0-9A-Za-z]{43})$/,
  ([logCost, size, saltText, encoded]) => {
    const [cost, blockSize] = [2 ** (crypt64Digit(logCost) + 1), crypt64Digit(size) + 1]
    const salt = crypt64Bytes(saltText)
    // As the reference implementation requires: more than one state for each lane.
    if (salt === undefined || cost < 4 || blockSize < 1) return undefined
    return ofProgram({ kind: 'yescrypt', cost, blockSize, salt }, encoded)
  },
)

export const md5Crypt = weak(
  formatOf(
    'crypt(3) MD5',
    'older Unix systems, .htpasswd',
    /^(\$1\$|\$apr1\$)([^$:\n]{0,8})\$([./0-9A-Za-z]{22})$/,
    ([magic, salt, encoded]) =>
      ofProgram({ kind: 'md5-crypt', magic: magic === '$1$' ? '$1$' : '$apr1$', salt }, encoded),
  ),
)

export const sha1Crypt = formatOf(
  'crypt(3) SHA-1',
  'NetBSD, passlib',
  /^\$sha1\$(\d{1,9})\$([./0-9A-Za-z]{0,64})\$([./0-9A-Za-z]{28})$/,
  ([rounds, salt, encoded]) =>
    Number(rounds) < 1 ? undefined : ofProgram({ kind: 'sha1-crypt', rounds: Number(rounds), salt }, encoded),
)

function ofProgram(program: DigestProgram, text: string): DigestRecipe {
  return { method: 'digest', program, text, encoding: 'crypt64' }
}
