// The length of a sealed request tells nothing of the account: known, unknown, or older.
import assert from 'node:assert/strict'
import { padRequest } from '@spillway/queue/wire/job'
import { requestSeal } from '@spillway/queue/wire/reply'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { test } from 'vitest'

const keyring = parseKeyring(`k1:${Buffer.from(Array.from({ length: 32 }, (_, n) => n)).toString('base64')}`)
const job = { id: 'job', name: 'verify', deadline: 1_800_000_000_000 } as const
/** What an account may have: no hash, or one of these; the last is the longest PHC string. */
const storedHashes = {
  none: null,
  bcrypt: `$2b$12$${'A'.repeat(53)}`,
  argon2id: `$argon2id$v=19$m=19456,t=2,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`,
  'argon2id of the shortest': `$argon2d$v=19$m=8,t=1,p=1$${'A'.repeat(11)}$${'A'.repeat(6)}`,
  'argon2id of the longest': `$argon2id$v=19$m=1048576,t=64,p=16$${'A'.repeat(64)}$${'A'.repeat(86)}`,
}

function sealedLength(request: Parameters<typeof padRequest>[0]): number {
  return keyring.seal(requestSeal(job), padRequest(request)).length
}

test('for every length of password the sealed request is of one length, whatever the stored hash', () => {
  const requests = Array.from({ length: 1_024 }, (_, n) => ({ password: 'x'.repeat(n + 1) }))
  const next = requests.map((request, n) => ({ ...request, nextPassword: 'ü"\\'.repeat(1 + (n % 200)) }))
  const typed = ['Passwort²', 'ｐａｓｓ'.repeat(60)].map((typed) => ({ password: typed.normalize('NFKC'), typed }))
  for (const request of [...requests, ...next, ...typed]) {
    const lengths = Object.values(storedHashes).map((storedHash) => sealedLength({ ...request, storedHash }))
    assert.equal(new Set(lengths).size, 1, `${JSON.stringify(request)}: ${lengths}`)
  }
})

test('sealed passwords of up to 256 bytes have one length, and longer ones the length of their block', () => {
  const lengths = Array.from({ length: 1_024 }, (_, n) =>
    sealedLength({ password: 'x'.repeat(n + 1), storedHash: null }),
  )
  assert.deepEqual([...new Set(lengths)].length, 4)
  assert.equal(lengths.lastIndexOf(lengths[0] ?? 0), 255)
})
