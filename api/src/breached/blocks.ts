/**
 * Blocks of a Golomb-coded set: ascending whole numbers in blocks of a fixed size, so that a number's block is found by binary search.
 * A block has its first number as a double, then the distance to each following number in Rice's code: the quotient by 2^riceBits in
 * ones that end with a zero, then the remainder in riceBits. Ones fill what is left.
 */

export const BLOCK_BYTES = 512
const BLOCK_BITS = BLOCK_BYTES * 8
const FIRST_BITS = 64

export interface BlockWriter {
  /** Adds a number that is not below the one before. The same again changes nothing. */
  add(value: number): void
  /** The blocks that are complete since it was last asked; at the end, the last one too. */
  take(options?: { isEnd: boolean }): Buffer[]
}

export function createBlockWriter(riceBits: number): BlockWriter {
  let complete: Buffer[] = []
  let block: Buffer | undefined
  let last = -1
  let position = 0

  function begin(value: number): void {
    if (block !== undefined) complete.push(block)
    block = Buffer.alloc(BLOCK_BYTES, 0xff)
    block.writeDoubleBE(value)
    position = FIRST_BITS
  }

  /** Bits are ones already. */
  function putZero(to: Buffer, at: number): void {
    to.writeUInt8(to.readUInt8(at >> 3) & ~(0x80 >> (at & 7)), at >> 3)
  }

  return {
    add(value) {
      if (value === last) return
      const distance = value - last
      last = value
      const quotient = Math.floor(distance / 2 ** riceBits)
      if (block === undefined || position + quotient + 1 + riceBits > BLOCK_BITS) return begin(value)
      const remainder = distance % 2 ** riceBits
      putZero(block, position + quotient)
      position += quotient + 1
      for (let bit = riceBits - 1; bit >= 0; bit -= 1, position += 1)
        if (((remainder >> bit) & 1) === 0) putZero(block, position)
    },
    take({ isEnd } = { isEnd: false }) {
      if (isEnd && block !== undefined) complete.push(block)
      if (isEnd) block = undefined
      const taken = complete
      complete = []
      return taken
    },
  }
}

/** Whether a number is in these blocks. */
export function isInBlocks(blocks: Buffer, value: number, riceBits: number): boolean {
  let [low, high] = [0, blocks.length / BLOCK_BYTES]
  // The block is the last one whose first number is not above the value.
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (blocks.readDoubleBE(middle * BLOCK_BYTES) <= value) low = middle
    else high = middle
  }
  const start = low * BLOCK_BYTES
  return high > low && isInBlock(blocks.subarray(start, start + BLOCK_BYTES), value, riceBits)
}

function isInBlock(block: Buffer, value: number, riceBits: number): boolean {
  const isOne = (at: number) => ((block[at >> 3] ?? 0) & (0x80 >> (at & 7))) !== 0
  let current = block.readDoubleBE()
  let position = FIRST_BITS
  while (current < value) {
    let quotient = 0
    while (position < BLOCK_BITS && isOne(position)) {
      quotient += 1
      position += 1
    }
    if (position === BLOCK_BITS) return false
    let remainder = 0
    for (const end = position + 1 + riceBits; ++position < end; ) remainder = remainder * 2 + Number(isOne(position))
    current += quotient * 2 ** riceBits + remainder
  }
  return current === value
}
