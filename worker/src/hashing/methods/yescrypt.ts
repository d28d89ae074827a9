/**
 * yescrypt (Alexander Peslyak, yescrypt-v2) with one lane and no ROM, as libxcrypt makes its
 * hashes. Step names are from the reference implementation.
 */
import { createHmac, hash, pbkdf2Sync } from 'node:crypto'

export interface YescryptCost {
  /** N and r of scrypt: the memory is 128 × N × r bytes. */
  cost: number
  blockSize: number
}

/** Words of a block of Salsa20 or pwxform, of an S-box, and of all three. */
const BLOCK = 16
const SBOX = 1_024
const SBOXES = 3 * SBOX
/** Rounds of pwxform; of the first and the last nothing is written to an S-box. */
const ROUNDS = 6
/** Selects one of 256 entries of four words by a byte offset. */
const SBOX_MASK = 4_080

/** The 32 bytes of the hash. */
export function yescrypt(password: Buffer, salt: Buffer, cost: YescryptCost): Buffer {
  const isLarge = cost.cost >= 0x100 && cost.cost * cost.blockSize >= 0x20000
  const input = isLarge ? derive(password, salt, { ...cost, cost: cost.cost / 64 }, 'yescrypt-prehash') : password
  const key = derive(input, salt, cost, 'yescrypt')
  return hash('sha256', hmac(key, Buffer.from('Client Key')), 'buffer')
}

function derive(password: Buffer, salt: Buffer, { cost, blockSize }: YescryptCost, name: string): Buffer {
  const bytes = pbkdf2Sync(hmac(Buffer.from(name), password), salt, 1, 128 * blockSize, 'sha256')
  const first = bytes.subarray(0, 32)
  const state = toWords(bytes)

  const boxes: SBoxes = { words: new Int32Array(SBOXES), s0: 2 * SBOX, s1: SBOX, s2: 0, written: 0 }
  const small = state.subarray(0, 2 * BLOCK)
  fill(small, boxes.words, SBOXES / small.length, (block) => blockmixSalsa(block))
  const key = hmac(toBytes(state.subarray(-BLOCK)), first)

  const memory = new Int32Array(cost * state.length)
  const mix = (block: Int32Array) => blockmixPwx(block, boxes)
  fill(state, memory, cost, mix, true)
  const passes = Math.floor((cost + 2) / 3)
  revisit(state, memory, cost, passes + (passes % 2), mix)
  return pbkdf2Sync(key, toBytes(state), 1, 32, 'sha256')
}

type Mix = (block: Int32Array) => void

/** SMix1: fills the memory with states, each mixed from the last and, `isMixing`, from another. */
function fill(state: Int32Array, memory: Int32Array, count: number, mix: Mix, isMixing = false): void {
  const { length } = state
  for (let i = 0; i < count; i++) {
    memory.set(state, i * length)
    if (isMixing && i > 1) {
      const power = 2 ** (31 - Math.clz32(i))
      xor(state, memory, (((state[length - BLOCK] ?? 0) & (power - 1)) + i - power) * length)
    }
    mix(state)
  }
}

/** SMix2: mixes the state with one of the memory, which it replaces. */
function revisit(state: Int32Array, memory: Int32Array, count: number, passes: number, mix: Mix): void {
  const { length } = state
  for (let i = 0; i < passes; i++) {
    const at = ((state[length - BLOCK] ?? 0) & (count - 1)) * length
    xor(state, memory, at)
    memory.set(state, at)
    mix(state)
  }
}

interface SBoxes {
  words: Int32Array
  /** Where each of the three begins; they change places with every block. */
  s0: number
  s1: number
  s2: number
  /** The next word of the third to be written. */
  written: number
}

function blockmixPwx(state: Int32Array, boxes: SBoxes): void {
  const block = state.slice(-BLOCK)
  for (let at = 0; at < state.length; at += BLOCK) {
    xor(block, state, at)
    pwxform(block, boxes)
    state.set(block, at)
  }
  salsa(state, state.length - BLOCK, 2)
}

/** Four gathers of two multiplications of 32 bits each, in six rounds. */
function pwxform(block: Int32Array, boxes: SBoxes): void {
  const { words, s0, s1, s2 } = boxes
  let { written } = boxes
  for (let round = 0; round < ROUNDS; round++) {
    for (let lane = 0; lane < BLOCK; lane += 4) {
      const p0 = s0 + (((block[lane] ?? 0) & SBOX_MASK) >> 2)
      const p1 = s1 + (((block[lane + 1] ?? 0) & SBOX_MASK) >> 2)
      for (let k = 0; k < 4; k += 2) {
        const low = block[lane + k] ?? 0
        const high = block[lane + k + 1] ?? 0
        const productLow = Math.imul(high, low) >>> 0
        const sumLow = productLow + ((words[p0 + k] ?? 0) >>> 0)
        const carry = sumLow > 0xffffffff ? 1 : 0
        const newLow = sumLow ^ (words[p1 + k] ?? 0)
        const newHigh = (highProduct(high, low) + (words[p0 + k + 1] ?? 0) + carry) ^ (words[p1 + k + 1] ?? 0)
        block[lane + k] = newLow
        block[lane + k + 1] = newHigh
        if (round > 0 && round < ROUNDS - 1) {
          words[s2 + written] = newLow
          words[s2 + written + 1] = newHigh
          written += 2
        }
      }
    }
  }
  Object.assign(boxes, { s0: s2, s1: s0, s2: s1, written: written % SBOX })
}

/** The upper 32 bits of the product of two unsigned words. */
function highProduct(a: number, b: number): number {
  const aHigh = a >>> 16
  const aLow = a & 0xffff
  const bHigh = b >>> 16
  const bLow = b & 0xffff
  const middle = (Math.imul(aHigh, bLow) >>> 0) + (Math.imul(aLow, bLow) >>> 16)
  const lower = (middle & 0xffff) + (Math.imul(aLow, bHigh) >>> 0)
  return (Math.imul(aHigh, bHigh) + (middle >>> 16) + (lower >>> 16)) | 0
}

/** Of two blocks, as the S-boxes need it. */
function blockmixSalsa(state: Int32Array): void {
  for (let at = 0; at < state.length; at += BLOCK) {
    xor(state.subarray(at, at + BLOCK), state, at === 0 ? BLOCK : 0)
    salsa(state, at, 8)
  }
}

/** Four words each: the columns, then the rows. */
const QUARTERS = [
  0, 4, 8, 12, 5, 9, 13, 1, 10, 14, 2, 6, 15, 3, 7, 11, 0, 1, 2, 3, 5, 6, 7, 4, 10, 11, 8, 9, 15, 12, 13, 14,
]

/** Salsa20 of a block in the order that yescrypt keeps its words in. */
function salsa(state: Int32Array, at: number, rounds: number): void {
  const x = new Int32Array(BLOCK)
  for (let i = 0; i < BLOCK; i++) x[(i * 5) % BLOCK] = state[at + i] ?? 0
  for (let round = 0; round < rounds; round += 2) {
    for (let quarter = 0; quarter < QUARTERS.length; quarter += 4) {
      const [a, b] = [QUARTERS[quarter] ?? 0, QUARTERS[quarter + 1] ?? 0]
      const [c, d] = [QUARTERS[quarter + 2] ?? 0, QUARTERS[quarter + 3] ?? 0]
      const [xa = 0, xd = 0] = [x[a], x[d]]
      const xb = (x[b] ?? 0) ^ rotated(xa + xd, 7)
      const xc = (x[c] ?? 0) ^ rotated(xb + xa, 9)
      const nd = xd ^ rotated(xc + xb, 13)
      x[b] = xb
      x[c] = xc
      x[d] = nd
      x[a] = xa ^ rotated(nd + xc, 18)
    }
  }
  for (let i = 0; i < BLOCK; i++) state[at + i] = (state[at + i] ?? 0) + (x[(i * 5) % BLOCK] ?? 0)
}

function rotated(sum: number, by: number): number {
  return (sum << by) | ((sum | 0) >>> (32 - by))
}

function xor(to: Int32Array, from: Int32Array, at: number): void {
  for (let i = 0; i < to.length; i++) to[i] = (to[i] ?? 0) ^ (from[at + i] ?? 0)
}

function hmac(key: Buffer, text: Buffer): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/** The words of bytes, each block in the order in which vector units take it. */
function toWords(bytes: Buffer): Int32Array {
  return Int32Array.from({ length: bytes.length / 4 }, (_, n) => bytes.readInt32LE(4 * shuffled(n)))
}

function toBytes(words: Int32Array): Buffer {
  const bytes = Buffer.alloc(4 * words.length)
  words.forEach((word, n) => void bytes.writeInt32LE(word, 4 * shuffled(n)))
  return bytes
}

function shuffled(n: number): number {
  return n - (n % BLOCK) + (((n % BLOCK) * 5) % BLOCK)
}
