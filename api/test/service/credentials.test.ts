// Which addresses and passwords are taken, and which of them are the same.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'vitest'
import { accountWithHash } from '../account.ts'
import { assertProblem, expect, newCredentials } from '../client.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const { api } = await system.gateway()
const password = 'correct horse battery staple'

test('an address is the same in any case, with blanks around it, composed or decomposed', async () => {
  const name = randomUUID()
  const user = expect(201, await api.register({ email: `  Zo\u{e9}.\u{141}\u{d6}${name}@EXAMPLE.Test\t`, password }))
  assert.equal(user.email, `zo\u{e9}.\u{142}\u{f6}${name}@example.test`)
  for (const email of [
    `zoe\u{301}.\u{141}o\u{308}${name}@example.test`,
    ` ZOE\u{301}.\u{142}\u{d6}${name}@example.TEST`,
  ]) {
    expect(200, await api.login({ email, password }))
    assertProblem(await api.register({ email, password }), 409, 'email_taken')
  }
})

test('a new password has at least 8 characters and at most 1,024 bytes, in any script', async () => {
  const { email } = await api.newAccount()
  const takes = [
    'a'.repeat(1_024),
    '\u{e9}'.repeat(8),
    // One character that becomes three.
    '\u{fb03}\u{fb03}\u{fb03}',
    '\u{1f511}'.repeat(256),
    ' '.repeat(8),
  ]
  const refuses = [
    '',
    'a-phras',
    'a'.repeat(1_025),
    // Composed, they are seven.
    'e\u{301}'.repeat(7),
    `${'\u{1f511}'.repeat(256)}a`,
  ]
  for (const taken of takes) {
    const credentials = { email: newCredentials().email, password: taken }
    expect(201, await api.register(credentials))
    expect(200, await api.login(credentials))
  }
  for (const refused of refuses) {
    const answer = await api.register({ email: newCredentials().email, password: refused })
    assertProblem(answer, 422, 'invalid_request')
    assert.deepEqual(answer.body.errors, [
      { field: 'password', message: 'must be text of at least 8 characters and at most 1024 bytes' },
    ])
  }
  assert.equal(await system.database.user.count({ where: { email } }), 1)
})

test('a new password is none that is guessed first, nor a name of the account or the service with some digits', async () => {
  const names = ['ada.lovelace', 'Ada.Lovelace1815', '!!ada.lovelace!!', 'Spillway2026!', 'spillway']
  const common = ['password', 'Password1', 'QWERTYUIOP', 'iloveyou', '12345678', '\u{ff30}assword', 'trustno1']
  const email = `ada.lovelace@${randomUUID()}.test`
  const account = { email, password }
  expect(201, await api.register(account))
  const { accessToken } = expect(200, await api.login(account))
  for (const guessed of [...names, ...common, email, email.toUpperCase()]) {
    // Refused for what it is, whether or not the address is taken.
    const registered = await api.register({ email, password: guessed })
    const changed = await api.changePassword(accessToken, password, guessed)
    for (const [answer, field] of [
      [registered, 'password'],
      [changed, 'newPassword'],
    ] as const) {
      assertProblem(answer, 422, 'invalid_request')
      const message = 'is too common; choose another password'
      assert.deepEqual(answer.body.errors, [{ field, message, code: 'password_too_common' }], guessed)
    }
  }
  // The name of another account is nobody's here, and more than a name is a passphrase.
  for (const taken of ['ada.lovelace1815', 'ada.lovelace of the spillway', 'a password 1'])
    expect(201, await api.register({ email: newCredentials().email, password: taken }))
})

test('PASSWORD_MIN_LENGTH asks for more characters of new passwords, and of no others', async () => {
  const { api: strict } = await system.gateway({ PASSWORD_MIN_LENGTH: '15' })
  const short = { email: newCredentials().email, password: '\u{e9}'.repeat(14) }
  const answer = await strict.register(short)
  assertProblem(answer, 422, 'invalid_request')
  const message = 'must be text of at least 15 characters'
  assert.deepEqual(answer.body.errors, [{ field: 'password', message, code: 'password_too_short' }])
  expect(201, await api.register(short))
  const { accessToken } = expect(200, await strict.login(short))
  expect(204, await strict.changePassword(accessToken, short.password, `${short.password}!`))
})

test('two passwords of the greatest length fit into one request, however they are escaped', async () => {
  const { email } = newCredentials()
  const [first, second] = ['\u{1}'.repeat(1_024), '\u{2}'.repeat(1_024)]
  expect(201, await api.register({ email, password: first }))
  const { accessToken } = expect(200, await api.login({ email, password: first }))
  expect(204, await api.changePassword(accessToken, first, second))
  expect(200, await api.login({ email, password: second }))
})

test('a password is whole: nothing is trimmed, cut or cased', async () => {
  const { email } = newCredentials()
  const whole = ` Pass\0word ${'x'.repeat(80)} `
  expect(201, await api.register({ email, password: whole }))
  for (const other of [
    whole.trim(),
    whole.toLowerCase(),
    whole.slice(0, 72),
    `${whole} `,
    ' Pass',
    whole.replace('word', 'wort'),
  ]) {
    assertProblem(await api.login({ email, password: other }), 401, 'invalid_credentials')
  }
  expect(200, await api.login({ email, password: whole }))
})

test('passwords that Unicode calls compatible are the same', async () => {
  const { email } = newCredentials()
  expect(201, await api.register({ email, password: '\u{fb01}le \u{212b}\u{ff11}\u{2460} stra\u{df}e' }))
  expect(200, await api.login({ email, password: 'file A\u{30a}11 stra\u{df}e' }))
  assertProblem(await api.login({ email, password: 'file A11 strasse' }), 401, 'invalid_credentials')
})

test('half a surrogate pair is no text', async () => {
  const { email } = await api.newAccount()
  const lone = 'pass phrase \u{d83d}'
  for (const start of ['register', 'login'] as const) {
    assertProblem(await api[start]({ email, password: lone }), 422, 'invalid_request')
    assertProblem(await api[start]({ email: `\u{d83d}${email}`, password }), 422, 'invalid_request')
  }
})

test('an account whose password is shorter than today asks for can still log in', async () => {
  const stored = '$argon2id$v=19$m=1024,t=1,p=1$JhFSrS6crVD51Hv2DV4xMQ$55mDf3c6ODw9ZApNf5usABWalDhpWknjkKPzYY06qeQ'
  expect(200, await api.login(await accountWithHash(system.database, stored, 'abc')))
  const { email } = await api.newAccount()
  assertProblem(await api.login({ email, password: 'x' }), 401, 'invalid_credentials')
  assertProblem(await api.login({ email, password: '' }), 422, 'invalid_request')
  assertProblem(await api.login({ email, password: 'x'.repeat(1_025) }), 422, 'invalid_request')
})
