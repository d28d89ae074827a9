// Stored hashes that other programs made, of passwords as people type them: public test vectors,
// and what Django, passlib, Werkzeug, argon2-cffi, PHP, Spring Security, node:crypto and crypt(3)
// made of the same awkward ones (data/).
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { afterAll, beforeEach, test, vi } from 'vitest'
import { Hasher } from '../../src/hashing/index.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'

interface Made {
  maker: string
  password: string
  storedHash: string
}

const policy = argon2idPolicy({ memoryKib: 64, time: 1, parallelism: 1 })
const peppers = [{ name: 'devise', secret: Buffer.from('pepper') }]

function made(name: string): Made[] {
  const text = readFileSync(new URL(`../data/${name}.ndjson`, import.meta.url), 'utf8')
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

/** What is refused by its format, or because its text alone does not tell how it was made. */
const refused = new Map([
  ['H17', 'a salt in a column of its own'],
  ['H18b', 'gost-yescrypt'],
  ['H27', 'a NUL behind it'],
  ['H28', 'blanks behind it, which an import trims'],
  ['spring-noop', 'plain text'],
  ['mkpasswd-gost-yescrypt', 'gost-yescrypt'],
  ['mkpasswd-sunmd5', 'MD5 of Sun'],
  ['mkpasswd-descrypt', 'DES'],
  ['mkpasswd-nt', 'NT hash'],
])
/** What was made of the password first, as an import is told. */
const madeOf = new Map([
  ['H26a', 'md5'],
  ['H26b', 'sha1'],
  ['H26c', 'pepper:devise'],
  ['phpbb-2y-htmlspecialchars', 'html'],
])
/** The makers cut passwords, so that more than these match. */
const cut = ['H20', 'H20b']
/** Some seconds each: they are tried once. */
const dear = [
  ...['C11', 'C24', 'C25', 'H04a', 'passlib-sha256_crypt-default', 'passlib-sha512_crypt-default'],
  'mkpasswd-sha512crypt-R500000',
]

/** Only a hang takes longer: the dear ones take minutes where this process seldom gets a processor. */
const DEAR_MS = 400_000

async function assertVerified(hasher: Hasher, { maker, password, storedHash }: Made): Promise<void> {
  const id = maker.split(' ')[0] ?? ''
  const steps = madeOf.get(id)
  const text = steps === undefined ? storedHash : `$of$${steps}$${storedHash}`
  const kind = hasher.examine(text).kind
  if (refused.has(id)) return assert.equal(kind, 'unknown', maker)
  assert.equal(kind, 'supported', maker)
  const forms = [...new Set([password.normalize('NFKC'), password])]
  // WordPress before 6.8 trims when it hashes, not when it verifies: outer blanks never match.
  const isForbidden = id.startsWith('wp-phpass') && password !== password.trim()
  assert.equal(await hasher.verify(forms, text), !isForbidden, `${maker}: the right password`)
  if (dear.includes(id)) return
  const wrong = cut.includes(id) ? `x${password}` : `${password}x`
  assert.equal(await hasher.verify(wrong, text), false, `${maker}: a wrong password`)
}

const rows = [...made('vectors'), ...made('made-by-originals')]
const idOf = ({ maker }: Made) => maker.split(' ')[0] ?? ''
/** No stored hash takes too long here: the bounds of time do not depend on the real machine. */
function infinitelyFast(): void {
  vi.spyOn(process, 'cpuUsage').mockReturnValue({ user: 0, system: 0 })
}
infinitelyFast()
beforeEach(infinitelyFast)
const hashers = {
  packages: await Hasher.load(policy, { slots: 2, peppers }),
  native: await Hasher.load(policy, { slots: 2, native: true, peppers }),
}
afterAll(() => hashers.native.native?.close())

for (const [n, one] of rows.entries())
  test(`${n}, ${one.maker}: the right password matches, and no other`, { timeout: DEAR_MS }, () =>
    assertVerified(hashers.packages, one),
  )

/** The first of each format, but for those whose text tells less than how they were made. */
const ofEachFormat = new Map<string, Made>()
for (const one of rows) {
  const label = hashers.packages.algorithmOf(one.storedHash)
  if (!ofEachFormat.has(label) && !dear.includes(idOf(one)) && !refused.has(idOf(one))) ofEachFormat.set(label, one)
}

for (const [label, one] of ofEachFormat) {
  // The native engine computes these functions alone.
  const isNative = /bcrypt|argon2|scrypt|pbkdf2/i.test(label)
  test.skipIf(hashers.native.native === undefined || !isNative)(`${label}: also by the native engine`, () =>
    assertVerified(hashers.native, one),
  )
}
