// An import into a real database: created, left and rejected are all lines there are; ids are
// mapped; weak digests rest inside argon2id.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { deletedAddressDigests } from '@spillway/api/deletion'
import type { Passwords } from '@spillway/client'
import { openDeleted } from '@spillway/infra/accounts/deleted'
import { createKinds } from '@spillway/infra/accounts/stored-accounts'
import { newSealKey } from '@spillway/infra/start/secrets'
import { parseKeyring } from '@spillway/queue/client'
import { test } from 'vitest'
import { bcrypt, cheapHasher, imported as importedBy, ndjson, newEmail, openAccounts } from '../accounts.ts'

const { database, fileOf } = await openAccounts()
const hasher = await cheapHasher()
const sealKeys = `${newSealKey('new')},${newSealKey('old')}`
const storedOf = (email: string) => database.user.findUniqueOrThrow({ where: { email } })

const passwords: Pick<Passwords, 'hash'> = { hash: (password) => hasher.hash(password) }

async function imported(records: readonly object[], ...options: string[]) {
  const file = await fileOf(`${randomUUID()}.ndjson`, ndjson(records))
  // Nothing else of it is used.
  const result = await importedBy(hasher, file, options, {
    database,
    passwords: () => passwords as Passwords,
    findDeleted: await openDeleted(database, sealKeys),
  })
  return { ...result, rejected: result.rejectedLines.map(({ line, reason }) => [line, reason] as const) }
}

test('an address that the file has twice is told from one that existed', async () => {
  const [first, existing] = [newEmail(), newEmail()]
  await imported([{ email: existing, passwordHash: bcrypt }])
  const far = Array.from({ length: 2_500 }, () => ({ email: newEmail(), passwordHash: bcrypt }))
  const once = { email: first, passwordHash: bcrypt }
  const twice = { email: first.toUpperCase(), passwordHash: bcrypt }
  const result = await imported([once, twice, { email: existing, passwordHash: bcrypt }, ...far, once])
  assert.deepEqual([result.created, result.existing], [2_501, 1])
  assert.deepEqual(result.rejected, [
    [2, 'has the address of line 1'],
    [2_504, 'has the address of line 1'],
  ])
})

test('an id that belongs to another address is named, and new ids are mapped, also those of accounts that existed', async () => {
  const id = randomUUID()
  const [one, two] = [newEmail(), newEmail()]
  await imported([{ id, email: one, passwordHash: bcrypt }])
  assert.deepEqual((await imported([{ id, email: two, passwordHash: bcrypt }])).rejected, [
    [1, 'has an id that belongs to another address'],
  ])
  const rows = [
    { id: '17', email: one, passwordHash: bcrypt },
    { id: 'user_2', email: two, passwordHash: bcrypt },
  ]
  const { mapped } = await imported(rows, '--id', 'new')
  assert.equal(mapped.get('17'), id)
  assert.equal(mapped.get('user_2'), (await storedOf(two)).id)
  assert.match((await imported(rows)).rejected[0]?.[1] ?? '', /^has an id that is not a UUID: --id new/)
})

test('an account that was deleted does not come back by an import, by any of the seal keys; without its key nothing is imported', async () => {
  const [deleted, other] = [newEmail(), newEmail()]
  const id = randomUUID()
  for (const name of [deleted, id]) {
    const [, digest = assert.fail('no second key')] = deletedAddressDigests(name, parseKeyring(sealKeys))
    await database.deletedAddress.create({ data: { digest: new Uint8Array(digest), keyId: 'old' } })
  }
  const md5 = '5f4dcc3b5aa765d61d8327deb882cf99'
  const rows = [
    { email: deleted.toUpperCase(), passwordHash: bcrypt },
    { email: other, passwordHash: bcrypt },
    { email: deleted, passwordHash: `md5$x$${md5}` },
    { id, email: newEmail(), passwordHash: bcrypt },
  ]
  const result = await imported(rows)
  assert.deepEqual([result.created, result.existing, result.deleted, result.rejected], [1, 0, 3, []])
  const again = await imported(rows.slice(0, 3), '--id', 'new')
  assert.deepEqual([again.created, again.existing, again.deleted, again.rejected], [0, 1, 2, []])
  assert.equal(await database.user.count({ where: { email: deleted } }), 0)
  for (const keys of [undefined, newSealKey('new')])
    await assert.rejects(openDeleted(database, keys), /set SPILLWAY_SEAL_KEYS to a list that has the keys old\.$/)
})

test('weak digests of every format rest inside argon2id, and their passwords log in', async () => {
  const after = ['--weak', 'sha256', '--salt', 'after']
  const rows: [password: string, passwordHash: string, salt?: string][] = [
    // By sha256sum.
    ['correct horse', 'd3b5c7db30196d4bed377bb2618d147446c41488b5b0bb0d640ccd17aa101dbe', 'salt~'],
    ['l\u00e8tmein', 'sha1$seasalt$cff36ea83f5706ce9aa7454e63e431fc726b2dc8'],
    ['hashcat', 'md5$84143$7f51edecfa6fb401a0b5e63d33fc8c0e'],
    ['helloworld', '{SHA}at+xg6SiyUovktq1redipHiJpaE='],
    ['hashcat', '$1$38652870$DUjsu4TTlTsOe/xxZ05uf/'],
    ['hashcat', '{CRYPT}$1$38652870$DUjsu4TTlTsOe/xxZ05uf/'],
    [
      'test123',
      '{SSHA512}xPUl/px+1cG55rUH4rzcwxdOIPSB2TingLpiJJumN2xyDWN4Ix1WQG3ihnvHaWUE8MYNkvMi5rf0C9NYixHsE6Yh59M=',
    ],
  ]
  for (const [password, passwordHash, salt] of rows) {
    const email = newEmail()
    const { rejected } = await imported([{ email, passwordHash, salt }], ...(salt === undefined ? [] : after))
    assert.deepEqual(rejected, [], passwordHash)
    const stored = (await storedOf(email)).passwordHash
    assert.match(stored, /^\$wrapped\$[\w,-]+\$[\w-]*\$argon2id\$/)
    assert.equal(await hasher.verify(password, stored), true, passwordHash)
    assert.equal(await hasher.verify(`${password}x`, stored), false)
    assert.equal(createKinds()(stored), 'weak digest inside argon2id')
  }
})

test('hashes are counted by names of formats', () => {
  const kindOf = createKinds()
  assert.equal(kindOf(bcrypt), 'bcrypt, cost 10')
  assert.equal(
    kindOf('$argon2id$v=19$m=256,p=1,t=2$pyjCAFVnz8LtrvIlxaMwig$TmqxfXMObdDUDPEfhFZ5C8IcUJiSPl5uuJyJUH2yVNY'),
    'argon2id, m=256,t=2,p=1',
  )
  assert.equal(kindOf('pbkdf2_sha256$36000$xIEozuZVAoYm$uW1b35DUKyhvQAf1mBqMvoBDcqSD06juzyO/nmyV0+w='), 'Django PBKDF2')
  assert.equal(kindOf(`$of$pepper:devise$${bcrypt}`), 'hash of what was made of the password: pepper:devise')
  assert.equal(kindOf('x'), 'no known format')
})
