// The native engine compared with `bcrypt`, `argon2` and node:crypto, at random.
import assert from 'node:assert/strict'
import { createHash, pbkdf2Sync, randomBytes, scryptSync } from 'node:crypto'
import { existsSync } from 'node:fs'
import { unpadded } from '@spillway/queue/wire/stored-hash'
import argon2 from 'argon2'
import bcrypt from 'bcrypt'
import { test } from 'vitest'
import { ADDON_FILE, NativeEngine } from '../../src/hashing/native.ts'

const skip = existsSync(ADDON_FILE) ? false : 'worker/engine has not been built here: that takes cargo'

const notX64 = process.arch === 'x64' ? false : 'there is code for x86-64 alone'

/** The package takes ten times as long for bcrypt. The engine's own tests compare with other implementations. */
const PASSWORDS = { bcrypt: 400, argon2: 1_600, pbkdf2: 1_000, scrypt: 1_000 }
const TOGETHER = 50
/** Blowfish's keys end here: what stands behind is not read. */
const BCRYPT_READS = 72

/** Repeatable: a failure names the seed, and SPILLWAY_TEST_SEED brings it back. */
const seed = process.env.SPILLWAY_TEST_SEED ?? randomBytes(6).toString('hex')

function randomOf(name: string) {
  let counter = 0
  const bytes = (count: number): Buffer =>
    createHash('shake256', { outputLength: count }).update(`${seed} ${name} ${counter++}`).digest()
  const below = (bound: number): number => bytes(4).readUInt32LE() % bound
  return { bytes, below, pick: <T>(values: readonly [T, ...T[]]): T => values[below(values.length)] ?? values[0] }
}
type Random = ReturnType<typeof randomOf>

/** 0 to 1,024 bytes: text, bytes that are no text, NULs, and lengths about where bcrypt stops. */
function password(random: Random): Buffer {
  const length = random.pick([0, 1, 71, 72, 73, random.below(72), random.below(255), random.below(1_025)])
  const bytes = random.bytes(Math.max(1, length)).subarray(0, length)
  const kind = random.below(4)
  if (kind === 0) return bytes
  if (kind === 1) return Buffer.from(bytes.map((byte) => (byte % 8 === 0 ? 0 : byte)))
  if (kind === 2) return Buffer.from(bytes.map((byte) => 32 + (byte % 95)))
  return Buffer.from(bytes.toString('latin1')).subarray(0, length)
}

/** Another password: often one that differs at a single place, or at an end. */
function another(random: Random, of: Buffer): Buffer {
  const kind = random.below(4)
  if (kind === 0 || of.length === 0) return Buffer.concat([of, Buffer.from([random.below(256)])])
  if (kind === 1) return of.subarray(0, -1)
  if (kind === 2) return password(random)
  const changed = Buffer.from(of)
  const at = random.below(of.length)
  changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8))
  return changed
}

async function compare(name: keyof typeof PASSWORDS, one: (random: Random, n: number) => Promise<void>): Promise<void> {
  const random = randomOf(name)
  for (let n = 0; n < PASSWORDS[name]; n += TOGETHER)
    await Promise.all(Array.from({ length: TOGETHER }, (_, k) => one(random, n + k)))
}

test.skipIf(skip)('bcrypt: hashes and results are those of the package', async () => {
  const engine = await NativeEngine.start(2)
  await compare('bcrypt', async (random, n) => {
    const plain = password(random)
    const other = another(random, plain)
    const version = random.pick(['a', 'b', 'y'])
    const salt = `$2b$0${4 + Number(random.below(32) === 0)}$${bcryptText(random.bytes(16))}`
    // The package calls 2y 2b. Under 2a it counts the length of a password in a byte, so of 255
    // bytes and more it reads too little, or one byte for ever: a mistake that 2b was made to end,
    // and that the engine does not repeat.
    const theirs = await bcrypt.hash(plain, salt)
    const where = `seed ${seed}, password ${n}: ${plain.toString('hex')} ${salt}`
    const setting = salt.replace('$2b', `$2${version}`)
    const [ours, result] = await Promise.all([engine.hash(plain, setting), engine.verify(other, theirs)])
    assert.equal(ours.replace(/^\$2./, '$2b'), theirs, where)
    assert.equal(result, await bcrypt.compare(other, theirs), where)
    if (version === 'a' && n % 4 === 0 && plain.length < 255)
      assert.equal(ours, await bcrypt.hash(plain, setting), where)
    if (n % 10 === 0) assert.equal(await engine.verify(plain.subarray(0, BCRYPT_READS), ours), true, where)
  })
})

test.skipIf(skip)('argon2: hashes and results are those of the package', async () => {
  const engine = await NativeEngine.start(2)
  await compare('argon2', async (random, n) => {
    const plain = password(random)
    const other = another(random, plain)
    const parallelism = random.pick([1, 1, 1, 2, 3, 5])
    const memoryCost = 8 * parallelism + random.below(120)
    const options = {
      type: random.pick([argon2.argon2id, argon2.argon2i, argon2.argon2d]),
      version: random.pick([0x13, 0x13, 0x10]),
      parallelism,
      memoryCost,
      timeCost: 1 + random.below(3),
      salt: random.bytes(8 + random.below(40)),
      hashLength: 4 + random.below(125),
    }
    const theirs = await argon2.hash(plain, options)
    const where = `seed ${seed}, password ${n}: ${plain.toString('hex')} ${theirs}`
    const setting = theirs.slice(0, theirs.lastIndexOf('$'))
    const [same, result, ours] = await Promise.all([
      engine.verify(plain, theirs),
      engine.verify(other, theirs),
      engine.hash(plain, setting),
    ])
    assert.equal(same, true, where)
    assert.equal(result, other.equals(plain), where)
    // A new digest has 32 bytes.
    if (n % 4 === 0) assert.equal(ours, await argon2.hash(plain, { ...options, hashLength: 32 }), where)
    if (n % 10 === 0) assert.equal(await argon2.verify(ours, other), result, where)
  })
})

/** The same key, another password, and a new key of 32 bytes. */
async function compareKey(engine: NativeEngine, random: Random, n: number, setting: string, derive: Derive) {
  const plain = password(random)
  const other = another(random, plain)
  const key = derive(plain, random.pick([16, 20, 24, 32, 48, 64]))
  const where = `seed ${seed}, password ${n}: ${plain.toString('hex')} ${setting} ${key.toString('hex')}`
  const theirs = `${setting}$${unpadded(key)}`
  const [same, result, ours] = await Promise.all([
    engine.verify(plain, theirs),
    engine.verify(other, theirs),
    engine.hash(plain, setting),
  ])
  assert.equal(same, true, where)
  // HMAC pads a key with zeros and digests one longer than a block: such passwords are the same.
  assert.equal(result, derive(other, key.length).equals(key), where)
  assert.equal(ours, `${setting}$${unpadded(derive(plain, 32))}`, where)
}
type Derive = (password: Buffer, bytes: number) => Buffer

test.skipIf(skip || notX64)('PBKDF2: hashes and results are those of node:crypto', async () => {
  const engine = await NativeEngine.start(2)
  await compare('pbkdf2', async (random, n) => {
    const salt = random.bytes(1 + random.below(random.pick([8, 32, 512])))
    // Of few kinds, so that many share a batch.
    const iterations = random.pick([1, 2, 3, 10, 50])
    const setting = `$pbkdf2-sha256$i=${iterations}$${unpadded(salt)}`
    await compareKey(engine, random, n, setting, (plain, bytes) => pbkdf2Sync(plain, salt, iterations, bytes, 'sha256'))
  })
})

test.skipIf(skip || notX64)('scrypt: hashes and results are those of node:crypto', async () => {
  const engine = await NativeEngine.start(2)
  await compare('scrypt', async (random, n) => {
    const salt = random.bytes(1 + random.below(random.pick([8, 32, 512])))
    const [log, r, p] = random.pick([
      [1, 1, 1],
      [4, 1, 2],
      [4, 8, 1],
      [5, 3, 5],
      [6, 2, 1],
      [7, 8, 1],
      [3, 17, 3],
    ])
    const setting = `$scrypt$ln=${log},r=${r},p=${p}$${unpadded(salt)}`
    await compareKey(engine, random, n, setting, (plain, bytes) =>
      scryptSync(plain, salt, bytes, { N: 2 ** log, r, p }),
    )
  })
})

test.skipIf(skip)('malformed hashes are refused, whatever they were made from', async () => {
  const engine = await NativeEngine.start(1)
  const random = randomOf('malformed')
  const hashes = [
    '$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW',
    '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
    '$pbkdf2-sha256$i=20$c2FsdA$g+sQC2o6l18P4//NwkGYUjIVTmhova8bJhzLGP7kyQg',
    '$scrypt$ln=4,r=2,p=1$TmFDbA$I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw',
  ] as const
  for (let n = 0; n < 1_000; n += 1) {
    const bytes = Buffer.from(random.pick(hashes))
    const at = random.below(bytes.length)
    const kind = random.below(3)
    const text =
      kind === 0
        ? bytes.subarray(0, at)
        : kind === 1
          ? Buffer.concat([bytes.subarray(0, at), random.bytes(1), bytes.subarray(at)])
          : Buffer.concat([bytes.subarray(0, at), random.bytes(1), bytes.subarray(at + 1)])
    const malformed = text.toString('latin1')
    // Some are well-formed, of another password or dear: none may match, hang or crash.
    if (/^\$2.\$(0[6-9]|1\d)|[mt]=\d{4,}|t=\d\d|ln=1/.test(malformed) || hashes.includes(malformed as never)) continue
    assert.notEqual(await engine.verify('x', malformed).catch(() => 'refused'), true, `seed ${seed}: ${malformed}`)
  }
  for (const dear of [
    '$2b$18$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW',
    '$2b$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW',
    '$argon2id$v=19$m=1048577,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
    '$argon2id$v=19$m=256,t=65,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
    '$pbkdf2-sha256$i=2000001$c2FsdA$g+sQC2o6l18P4//NwkGYUjIVTmhova8bJhzLGP7kyQg',
    `$pbkdf2-sha256$i=1000001$c2FsdA$${'A'.repeat(86)}`,
    '$pbkdf2-sha256$i=4294967297$c2FsdA$g+sQC2o6l18P4//NwkGYUjIVTmhova8bJhzLGP7kyQg',
    '$scrypt$ln=20,r=8,p=1$TmFDbA$I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw',
    '$scrypt$ln=16,r=8,p=9$TmFDbA$I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw',
    '$scrypt$ln=64,r=8,p=1$TmFDbA$I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw',
    '$scrypt$ln=4,r=4294967295,p=4294967295$TmFDbA$I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw',
    '$argon2id$v=19$m=256,t=2,p=17$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
  ])
    await assert.rejects(engine.verify('x', dear), /not at this cost/, dear)
})

/** bcrypt's own base64: another alphabet, no padding. */
function bcryptText(bytes: Buffer): string {
  const standard = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const own = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
  return bytes
    .toString('base64')
    .replace(/=+$/, '')
    .replace(/./g, (char) => own[standard.indexOf(char)] ?? '')
}
