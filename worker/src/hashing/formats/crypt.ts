/** crypt(3) of Unix systems: SHA-2, yescrypt, MD5 and NetBSD's SHA-1. DES and Sun's MD5 are not supported. */
import { crypt64Digit } from '../methods/crypt64.js'
import type { DigestProgram } from '../methods/digest-programs.js'
import type { Format, Reading } from './format.js'
import { crypt64Bytes } from './texts.js'

const SHA_CRYPT = {
  sha256: /^\$5\$(?:rounds=(\d{4,9})\$)?([^$:\n]{0,16})\$([./0-9A-Za-z]{43})$/,
  sha512: /^\$6\$(?:rounds=(\d{4,9})\$)?([^$:\n]{0,16})\$([./0-9A-Za-z]{86})$/,
}
const DEFAULT_ROUNDS = 5_000
const MIN_ROUNDS = 1_000

/** Drepper's, of 5,000 rounds unless the text says otherwise. */
export const shaCrypt: Format = {
  name: 'crypt(3) SHA',
  makers: 'Linux, PHP, passlib, Ansible, Dovecot',
  read(text) {
    const digest = text.startsWith('$5$') ? 'sha256' : 'sha512'
    const [, rounds = DEFAULT_ROUNDS, salt = '', encoded] = SHA_CRYPT[digest].exec(text) ?? []
    if (Number(rounds) < MIN_ROUNDS) return undefined
    return ofProgram({ kind: 'sha-crypt', digest, rounds: Number(rounds), salt }, encoded)
  },
}

/** N and r are a character each: their logarithm and number less one. What follows them in other hashes is not supported. */
const YESCRYPT = /^\$y\$j([./0-9A-Z])([./0-9A-Z])\$([./0-9A-Za-z]{2,86})\$([./0-9A-Za-z]{43})$/

/** With libxcrypt's flags (`j`), one lane and no ROM. */
export const yescrypt: Format = {
  name: 'crypt(3) yescrypt',
  makers: 'Debian, Fedora and Ubuntu since 2021',
  read(text) {
    const [, logCost = '', size = '', saltText = '', encoded] = YESCRYPT.exec(text) ?? []
    const [cost, blockSize] = [2 ** (crypt64Digit(logCost) + 1), crypt64Digit(size) + 1]
    const salt = crypt64Bytes(saltText)
    // As the reference implementation requires: more than one state for each lane.
    if (salt === undefined || cost < 4 || blockSize < 1) return undefined
    return ofProgram({ kind: 'yescrypt', cost, blockSize, salt }, encoded)
  },
}

const MD5_CRYPT = /^(\$1\$|\$apr1\$)([^$:\n]{0,8})\$([./0-9A-Za-z]{22})$/

export const md5Crypt: Format = {
  name: 'crypt(3) MD5',
  makers: 'older Unix systems, .htpasswd',
  isWeak: true,
  read(text) {
    const [, magic, salt = '', encoded] = MD5_CRYPT.exec(text) ?? []
    return ofProgram({ kind: 'md5-crypt', magic: magic === '$1$' ? '$1$' : '$apr1$', salt }, encoded)
  },
}

const SHA1_CRYPT = /^\$sha1\$(\d{1,9})\$([./0-9A-Za-z]{0,64})\$([./0-9A-Za-z]{28})$/

export const sha1Crypt: Format = {
  name: 'crypt(3) SHA-1',
  makers: 'NetBSD, passlib',
  read(text) {
    const [, rounds, salt = '', encoded] = SHA1_CRYPT.exec(text) ?? []
    if (Number(rounds) < 1) return undefined
    return ofProgram({ kind: 'sha1-crypt', rounds: Number(rounds), salt }, encoded)
  },
}

function ofProgram(program: DigestProgram, text: string | undefined): Reading | undefined {
  return text === undefined ? undefined : { recipes: [{ method: 'digest', program, text, encoding: 'crypt64' }] }
}
