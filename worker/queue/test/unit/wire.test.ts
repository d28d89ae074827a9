// Known answers: the wire as it is today. Gateways and workers of two versions run side by side while one replaces the other,
// and tickets outlive both: whatever makes one of these tests fail makes them misunderstand each other.
import assert from 'node:assert/strict'
import { createCipheriv, createDecipheriv } from 'node:crypto'
import { QueueKeys } from 'bullmq'
import { test } from 'vitest'
import { jobKey, lineKey, lockKey, probeKey, queueKey } from '../../src/keys.ts'
import { capacityKey } from '../../src/wire/capacity.ts'
import { ACCOUNTS, DEFAULT_QUEUE_PREFIX, padRequest, QUEUE_NAME, TICKETED_PRIORITY } from '../../src/wire/job.ts'
import {
  decodeReply,
  presentKey,
  replyChannel,
  requestSeal,
  resultKey,
  resultSeal,
  upgradeOf,
} from '../../src/wire/reply.ts'
import { parseKeyring, type SealContext } from '../../src/wire/seal.ts'

/** The bytes 0 to 31. */
const KEY = Buffer.from(Array.from({ length: 32 }, (_, i) => i))
const keyring = parseKeyring(`k1:${KEY.toString('base64')}`)
const job = { id: '00000000-0000-4000-8000-000000000001', name: 'verify', deadline: 1_700_000_000_000 } as const
const contents = { password: 'correct horse', storedHash: null }

interface KnownAnswer {
  context: SealContext
  /**
   * HMAC-SHA256 under the key above, as another program computed it, of 00000001, `spillway/1/` and the purpose, 00, the id, and
   * 00000100 (SP 800-108, counter mode, one block).
   */
  derivedKey: string
  associatedData: string
}

const knownAnswers: KnownAnswer[] = [
  {
    context: requestSeal(job),
    derivedKey: 'd57aa69111e0b3ede85a50d03cad513c16395c43e0e7be77b444fae0c470868c',
    associatedData: '["k1","request","00000000-0000-4000-8000-000000000001","verify",1700000000000]',
  },
  {
    context: resultSeal(job),
    derivedKey: 'cdff139665bd71c9bf3742a9a0a61725a859b6bb7e379ba4478fae368b03d28d',
    associatedData: '["k1","result","00000000-0000-4000-8000-000000000001","verify",1700000000000]',
  },
  {
    context: { purpose: 'ticket', id: job.id },
    derivedKey: 'fdbbbd9c8c80df59bdc988dc17acb22814d39fbbf4856414f4c977065332deab',
    associatedData: '["k1","ticket","00000000-0000-4000-8000-000000000001"]',
  },
]

for (const { context, derivedKey, associatedData } of knownAnswers) {
  const key = Buffer.from(derivedKey, 'hex')

  test(`a sealed ${context.purpose} is a key id, a dot, and in base64url nonce, blocks of 256 bytes and tag`, () => {
    const [kid, encoded = '', ...rest] = keyring.seal(context, contents).split('.')
    assert.deepEqual([kid, rest], ['k1', []])
    const bytes = Buffer.from(encoded, 'base64url')
    assert.equal(bytes.length, 12 + 256 + 16)
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
    decipher.setAAD(Buffer.from(associatedData)).setAuthTag(bytes.subarray(-16))
    const plain = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()])
    assert.equal(plain.toString(), JSON.stringify(contents).padEnd(256, ' '))
  })

  test(`a ${context.purpose} that another implementation sealed opens`, () => {
    const nonce = Buffer.alloc(12, 7)
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(associatedData))
    const parts = [nonce, cipher.update(JSON.stringify(contents)), cipher.final(), cipher.getAuthTag()]
    assert.deepEqual(keyring.open(context, `k1.${Buffer.concat(parts).toString('base64url')}`), contents)
  })
}

test('a verify is padded to blocks of 256 bytes besides its passwords, whatever its stored hash, and a hash is not', () => {
  const hash = { password: 'correct horse' }
  assert.deepEqual(padRequest(hash), hash)
  for (const [storedHash, bytes] of [
    [null, 256],
    ['x'.repeat(193), 256],
    ['x'.repeat(194), 512],
  ] as const) {
    const padded = padRequest({ password: '', storedHash, owner: ACCOUNTS })
    assert.match(JSON.stringify(padded), /,"padding":" *"}$/)
    assert.deepEqual(
      [JSON.stringify(padded).length, { ...padded, padding: '' }],
      [bytes, { password: '', storedHash, owner: ACCOUNTS, padding: '' }],
    )
  }
  const padded = JSON.stringify(padRequest({ password: '', storedHash: null, nextPassword: 'x' }))
  assert.equal(padded.length - ',"nextPassword":"x"'.length, 256)
})

test('keys and channels in Redis are called what they always were', () => {
  assert.equal(DEFAULT_QUEUE_PREFIX, '{spillway}')
  assert.equal(QUEUE_NAME, 'passwords')
  assert.equal(TICKETED_PRIORITY, 1)
  const prefix = DEFAULT_QUEUE_PREFIX
  for (const [key, name] of [
    [resultKey(prefix, 'a-job'), '{spillway}:result:a-job'],
    [presentKey(prefix, 'a-job'), '{spillway}:present:a-job'],
    [replyChannel(prefix, 'a-gateway'), '{spillway}:replies:a-gateway'],
    [capacityKey(prefix), '{spillway}:capacity'],
    [queueKey(prefix, 'wait'), '{spillway}:passwords:wait'],
    [lineKey(prefix), '{spillway}:line'],
    [jobKey(prefix), '{spillway}:passwords:'],
    [lockKey(prefix, 'a-job'), '{spillway}:passwords:a-job:lock'],
    [probeKey(prefix, 'a-gateway'), '{spillway}:probe:a-gateway'],
  ])
    assert.equal(key, name)
})

test('a reply is the id of a job, a blank, and the sealed answer; the next seal has an id of its own', () => {
  assert.deepEqual(decodeReply('a-job k1.xyz'), { jobId: 'a-job', sealed: 'k1.xyz' })
  assert.deepEqual(upgradeOf(job), { ...job, id: `${job.id}.upgrade` })
})

// Names of BullMQ's keys: we read and write some of them beside it, so the names must be the same.

const bullmq = new QueueKeys(DEFAULT_QUEUE_PREFIX)

test('lists, sets and settings of the queue, and jobs, have the names that BullMQ gives them', () => {
  for (const part of ['wait', 'prioritized', 'delayed', 'active', 'completed', 'failed', 'meta'] as const)
    assert.equal(queueKey(DEFAULT_QUEUE_PREFIX, part), bullmq.getKeys(QUEUE_NAME)[part])
  assert.equal(jobKey(DEFAULT_QUEUE_PREFIX, 'a-job'), bullmq.toKey(QUEUE_NAME, 'a-job'))
})
