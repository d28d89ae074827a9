import assert from 'node:assert/strict'
import { test } from 'vitest'
import { seedUsers } from '../../src/seed.ts'
import { openDatabases, opened } from '../databases.ts'

const { migratedUrl } = await openDatabases()

test('seeding again creates only what is missing, and gives every account the password last asked for', async (t) => {
  const database = opened(t, migratedUrl)
  assert.deepEqual(await seedUsers(database, { users: 10_002, passwordHash: 'first' }), {
    created: 10_002,
    existing: 0,
  })
  const before = await database.user.findMany({ orderBy: { email: 'asc' } })
  assert.deepEqual(await seedUsers(database, { users: 10_002, passwordHash: 'first' }), {
    created: 0,
    existing: 10_002,
  })
  assert.deepEqual(await database.user.findMany({ orderBy: { email: 'asc' } }), before)

  assert.deepEqual(await seedUsers(database, { users: 10_003, passwordHash: 'other' }), {
    created: 1,
    existing: 10_002,
  })
  assert.equal(await database.user.count({ where: { passwordHash: 'other' } }), 10_003)
  const { credentialVersion } = await database.user.findUniqueOrThrow({ where: { email: 'user-10002@example.test' } })
  assert.equal(credentialVersion, 2)
})
