/**
 * What a stored hash may cost with a password: neither a bad row nor a long password may exhaust a
 * worker. The bounds are memory, and processor time for all attempts together, measured once for
 * each method, at the first cost above the usual.
 */
import { pbkdf2Sync, scryptSync } from 'node:crypto'
import type { HashPolicy } from '@spillway/queue/wire/policy'
import type { Setting } from '@spillway/queue/wire/setting'
import type { StoredHash } from '@spillway/queue/wire/stored-hash'
import { scryptMemoryBytes } from './methods/derived-key.js'
import { computeDigest, type DigestProgram, readsPassword, roundsOf } from './methods/digest-programs.js'
import type { Methods } from './methods/list.js'
import { type Password, pbkdf2Digests, type Recipe } from './methods/recipe.js'

/** The processor time that one verification may take, in milliseconds. */
export const TIME_LIMIT_MS = 2_000
/** The shortest measurement counts: other work of the machine lengthens measurements. */
const MEASUREMENTS = 3

/** Work in units of one kind, which take the same time on one machine. */
interface Work {
  kind: Kind
  units: number
  memoryKib: number
  /** Bytes of the password that each unit reads. */
  bytes: number
  /** The program of a digest. */
  program?: DigestProgram
}

/** The longest password for which usual costs need no measurement. */
const USUAL_BYTES = 64

/**
 * Units that are accepted without a measurement: makers' defaults must be verified on the slowest
 * worker. They take up to two seconds of a processor of 2020.
 */
const USUAL = {
  /** KiB times passes: libsodium's moderate cost. */
  argon2: 3 * 262_144,
  /** Rounds. */
  bcrypt: 2 ** 15,
  /** Iterations for each block of the key; Django 6.1 has 1,500,000. */
  'pbkdf2-sha1': 2_000_000,
  'pbkdf2-sha224': 2_000_000,
  'pbkdf2-sha256': 2_000_000,
  'pbkdf2-sha384': 1_000_000,
  'pbkdf2-sha512': 1_000_000,
  /** N × r × p; OWASP's Password Storage Cheat Sheet gives 2^20. */
  scrypt: 2 ** 21,
  /** Rounds; passlib's defaults are 535,000 and 656,000. */
  'sha-crypt-sha256': 535_000,
  'sha-crypt-sha512': 656_000,
  'md5-crypt': 1_000,
  plain: 100_000,
  'plain-input': 100_000,
  /** Rounds; WordPress has 2^13, Drupal 2^16. */
  'phpass-md5': 2 ** 18,
  'phpass-sha512': 2 ** 18,
} as const
type Kind = keyof typeof USUAL

/** A text that the old system may have hashed, and the recipe. */
export interface Attempt {
  text: Password
  recipe: Recipe
}

export interface Excess {
  milliseconds?: number
  memoryMib?: number
}

interface BoundsOptions {
  /** The worker's policy, whose cost is always accepted. */
  policy: HashPolicy
  /** For a stored hash that is verified alone. */
  memoryLimitKib: number
  /** How many calls of an algorithm are done at a time. */
  width(algorithm: 'argon2' | 'bcrypt'): number
}

export class Bounds {
  readonly memoryLimitKib: number
  readonly #own: Work
  readonly #measured: Map<Kind, UnitTime>

  private constructor({ policy, memoryLimitKib }: BoundsOptions, argon2Ms: number, bcryptMs: number) {
    this.#own = workOfCost(policy)
    this.memoryLimitKib = memoryLimitKib
    this.#measured = new Map<Kind, UnitTime>([
      ['argon2', { ms: argon2Ms, msOfByte: 0 }],
      ['bcrypt', { ms: bcryptMs, msOfByte: 0 }],
    ])
  }

  /** Measures argon2 and bcrypt, with small hashes. */
  static async measure({ argon2, bcrypt }: Methods, options: BoundsOptions): Promise<Bounds> {
    const { width } = options
    const cheap = { memoryKib: 2_048, time: 1, parallelism: 1 }
    const argon2Ms = await msOf(width('argon2'), () => argon2.verify('', argon2.dummy(cheap)))
    const bcryptMs = await msOf(width('bcrypt'), () => bcrypt.verify('', bcrypt.dummy(5)))
    return new Bounds(options, argon2Ms / cheap.memoryKib, bcryptMs / 2 ** 5)
  }

  /** The processor time of a hash of the policy, as predicted by small ones (ms). */
  policyMs(): number {
    return this.#timeOf(this.#own)
  }

  /** The time or memory of a recipe if it is too much; otherwise undefined. */
  excessOf(recipe: Recipe): Excess | undefined {
    return this.#excessOf([workOf(recipe)])
  }

  /** The attempts that are accepted together, in their order. */
  acceptedOf(attempts: readonly Attempt[]): Attempt[] {
    const works: Work[] = []
    return attempts.filter(({ text, recipe }) => {
      const work = workOf(recipe, Buffer.byteLength(text))
      const isAccepted = this.#excessOf([...works, work]) === undefined
      if (isAccepted) works.push(work)
      return isAccepted
    })
  }

  /** Whether argon2 or bcrypt of this cost is accepted. */
  accepts(of: HashPolicy | Setting): boolean {
    return this.#excessOf([workOfCost(of)]) === undefined
  }

  #excessOf(works: readonly Work[]): Excess | undefined {
    const memoryKib = Math.max(...works.map((work) => work.memoryKib))
    if (memoryKib > this.memoryLimitKib) return { memoryMib: Math.ceil(memoryKib / 1_024) }
    const counted = works.filter(({ kind, units }) => kind !== this.#own.kind || units > this.#own.units)
    if (sumOf(counted, ({ kind, units, bytes }) => (bytes > USUAL_BYTES ? 2 : units / USUAL[kind])) <= 1)
      return undefined
    const milliseconds = Math.ceil(sumOf(counted, (work) => this.#timeOf(work)))
    return milliseconds > TIME_LIMIT_MS ? { milliseconds } : undefined
  }

  #timeOf({ kind, units, bytes, program }: Work): number {
    const unit = this.#measured.get(kind) ?? measure(kind, program)
    this.#measured.set(kind, unit)
    return units * (unit.ms + Math.max(0, bytes - USUAL_BYTES) * unit.msOfByte)
  }
}

function sumOf(works: readonly Work[], figureOf: (work: Work) => number): number {
  return works.reduce((sum, work) => sum + figureOf(work), 0)
}

const BCRYPT_KIB = 4

function workOfCost(of: HashPolicy | Setting | StoredHash): Work {
  if (of.algorithm === 'bcrypt') return { kind: 'bcrypt', units: 2 ** of.cost, memoryKib: BCRYPT_KIB, bytes: 0 }
  return { kind: 'argon2', units: of.memoryKib * of.time, memoryKib: of.memoryKib, bytes: 0 }
}

/** @param bytes of the password [no more than usual] */
function workOf(recipe: Recipe, bytes = USUAL_BYTES): Work {
  switch (recipe.method) {
    case 'argon2':
      return workOfCost(recipe.stored)
    case 'bcrypt':
      return workOfCost({ algorithm: 'bcrypt', cost: recipe.cost })
    case 'pbkdf2': {
      const blocks = Math.ceil(recipe.key.length / pbkdf2Digests[recipe.digest])
      return { kind: `pbkdf2-${recipe.digest}`, units: recipe.iterations * blocks, memoryKib: 0, bytes: 0 }
    }
    case 'scrypt':
    case 'firebase': {
      const units = (recipe.cost + pbkdf2Units(recipe)) * recipe.blockSize * recipe.parallelization
      return { kind: 'scrypt', units, memoryKib: scryptMemoryBytes(recipe) / 1_024, bytes: 0 }
    }
    case 'digest':
      return digestWork(recipe.program, bytes)
    case 'wrapped':
      return workOfCost(recipe.outer.stored)
  }
}

/** The part of N that takes as long as PBKDF2 before and after scrypt. */
function pbkdf2Units({ salt }: { salt: Buffer }): number {
  return 16 + salt.length / 32
}

function digestWork(program: DigestProgram, bytes: number): Work {
  const readBytes = readsPassword(program) ? bytes : 0
  const work = { units: roundsOf(program), memoryKib: 0, bytes: readBytes, program }
  const { kind } = program
  if (kind === 'sha-crypt') return { kind: `sha-crypt-${program.digest}`, ...work }
  if (kind === 'phpass') return { kind: `phpass-${program.digest}`, ...work }
  if (kind === 'plain' && program.behind === 'input') return { kind: 'plain-input', ...work }
  return { kind, ...work }
}

/** The time of one unit with a usual password, and of each byte beyond it. */
interface UnitTime {
  ms: number
  msOfByte: number
}

/** Measures by functions that return at once: a sample takes some milliseconds. */
function measure(kind: Kind, program: DigestProgram | undefined): UnitTime {
  const samples = [USUAL_BYTES, LONG_BYTES].map((bytes) => ({
    ...sampleOf(kind, program, bytes),
    ms: Number.POSITIVE_INFINITY,
  }))
  // Alternately, because the first calls are slower: their code is not compiled yet.
  for (let n = 0; n < 2 * MEASUREMENTS; n++) {
    for (const sample of samples) {
      const before = process.cpuUsage()
      sample.work()
      const { user, system } = process.cpuUsage(before)
      sample.ms = Math.min(sample.ms, (user + system) / 1_000 / sample.units)
    }
  }
  const [usual = 0, long = 0] = samples.map(({ ms }) => ms)
  return { ms: usual, msOfByte: Math.max(usual / LEAST_DOUBLING_BYTES, (long - usual) / (LONG_BYTES - USUAL_BYTES)) }
}

function sampleOf(kind: Kind, of: DigestProgram | undefined, bytes: number): { work: () => unknown; units: number } {
  if (kind === 'scrypt') return { work: () => scryptSync('', SALT, 32, { N: 1_024, r: 8, p: 1 }), units: 8_192 }
  if (of === undefined) {
    const digest = kind.slice('pbkdf2-'.length)
    return { work: () => pbkdf2Sync('', SALT, 10_000, 20, digest), units: 10_000 }
  }
  const program = shortened(of)
  const password = Buffer.alloc(bytes, 'correct horse')
  return { work: () => computeDigest({ program, password }), units: roundsOf(program) }
}

/** The same program at a cost of some milliseconds; a plain digest with the slowest function. */
function shortened(program: DigestProgram): DigestProgram {
  if (program.kind === 'md5-crypt') return program
  return program.kind === 'plain' ? { ...program, digest: 'sha512', rounds: ROUNDS } : { ...program, rounds: ROUNDS }
}

const SALT = Buffer.from('saltsalt')
const ROUNDS = 1_000
/** The length of the longer password that is measured. */
const LONG_BYTES = 576
/** This many bytes at least double the time of a round, even if a measurement was disturbed. */
const LEAST_DOUBLING_BYTES = 4_096

/** The processor time of one call in a full batch of the engine, in milliseconds. */
async function msOf(width: number, call: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let n = 0; n < MEASUREMENTS; n++) {
    const before = process.cpuUsage()
    await Promise.all(Array.from({ length: width }, call))
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, Math.max(1, user + system) / 1_000 / width)
  }
  return least
}
