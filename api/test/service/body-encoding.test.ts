// Bodies are UTF-8: no byte is replaced on the way, so that no two passwords become the same.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { type Answer, assertProblem, expect, newCredentials } from '../client.ts'
import { heldAnyway, shareSystem } from '../system.ts'

const OPERATOR = { OPS_USER: 'operator', OPS_PASSWORD: 'a password for operators' }

/** Bytes in the place of a password, within JSON that is otherwise ASCII. */
const notUtf8 = {
  'windows-1251': [0xef, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2, 0x20, 0xec, 0xe8, 0xf0],
  'a byte that continues nothing': [...Buffer.from('pass phrase'), 0x80],
  'an overlong slash of two bytes': [...Buffer.from('pass phrase'), 0xc0, 0xaf],
  'surrogates, as CESU-8 has them': [...Buffer.from('pass phrase'), 0xed, 0xa0, 0xbd, 0xed, 0xb4, 0x91],
  'a code point beyond Unicode': [...Buffer.from('pass phrase'), 0xf4, 0x90, 0x80, 0x80],
  'a sequence that is cut short': [...Buffer.from('pass phrase'), 0xf0, 0x9f, 0x94],
}

const system = await shareSystem()
const { api, opsUrl } = await system.gateway(OPERATOR, heldAnyway)
const account = await api.newAccount()
const board = `${opsUrl}/queues/api/queues/passwords/add`
const operator = { authorization: `Basic ${btoa(`${OPERATOR.OPS_USER}:${OPERATOR.OPS_PASSWORD}`)}` }
/** Of either port, with a body that is good but for what a test does to it. */
const routes: { method: string; url: string; body: Record<string, string>; headers: Record<string, string> }[] = [
  { method: 'POST', url: `${api.url}/v1/login`, body: { ...account }, headers: {} },
  { method: 'POST', url: `${api.url}/v1/logout`, body: { refreshToken: 'x' }, headers: {} },
  { method: 'POST', url: board, body: { name: 'verify' }, headers: operator },
]

/** Sends bytes as they are. */
async function send(
  route: { method: string; url: string; headers: Record<string, string> },
  bytes: Uint8Array<ArrayBuffer>,
  contentType = 'application/json',
): Promise<Answer> {
  const { method, headers } = route
  const response = await fetch(route.url, { method, headers: { ...headers, 'content-type': contentType }, body: bytes })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) }
}

/** A body whose last value is these bytes. */
function bodyWith(body: Record<string, string>, value: number[]): Uint8Array<ArrayBuffer> {
  const [before = '', behind = ''] = JSON.stringify({ ...body, [Object.keys(body).at(-1) ?? '']: '<>' }).split('<>')
  return Uint8Array.from([...Buffer.from(before), ...value, ...Buffer.from(behind)])
}

test('a body that is not UTF-8 is refused on every port', async () => {
  for (const route of routes) {
    for (const [what, value] of Object.entries(notUtf8)) {
      const answer = await send(route, bodyWith(route.body, value))
      assert.equal(answer.status, 400, `${route.url}: ${what}`)
      assertProblem(answer, 400, 'malformed_request')
    }
    const text = JSON.stringify(route.body)
    const littleEndian = Buffer.from(`\u{feff}${text}`, 'utf16le')
    for (const bytes of [littleEndian, Buffer.from(littleEndian).swap16(), Buffer.from(text, 'utf16le')]) {
      assertProblem(await send(route, Uint8Array.from(bytes)), 400, 'malformed_request')
    }
  }
})

test('a charset that is not UTF-8 is refused on every port, and so is one that is named twice', async () => {
  const refused = [
    'charset=windows-1251',
    'charset',
    "charset*=utf-8''windows-1251",
    'charset="utf-8',
    "charset='utf-8'",
    'charset=utf-8; charset=windows-1251',
    'profile=x; charset=koi8-r',
    'profile=";"; charset=koi8-r',
  ]
  for (const route of routes) {
    const bytes = Uint8Array.from(Buffer.from(JSON.stringify(route.body)))
    for (const parameters of refused) {
      const answer = await send(route, bytes, `application/json; ${parameters}`)
      assert.equal(answer.status, 415, `${route.url}: ${parameters}`)
      assertProblem(answer, 415, 'unsupported_media_type')
    }
  }
})

test('UTF-8 may be named, quoted or not, in any case, and begin with one byte order mark', async () => {
  const credentials = { ...newCredentials(), password: 'пароль \u{1f511}' }
  expect(201, await api.register(credentials))
  const text = JSON.stringify(credentials)
  const route = { method: 'POST', url: `${api.url}/v1/login`, headers: {} }
  for (const parameters of ['', ';charset=utf-8', '; Charset="UTF-8" ', '; profile=x; charset=Utf-8']) {
    const answer = await send(route, Uint8Array.from(Buffer.from(text)), `application/json${parameters}`)
    assert.equal(answer.status, 200, parameters)
  }
  expect(200, await send(route, Uint8Array.from(Buffer.from(`\u{feff}${text}`))))
  assertProblem(await send(route, Uint8Array.from(Buffer.from(`\u{feff}\u{feff}${text}`))), 400, 'malformed_request')
})

test('U+FFFD is a character as any other, and stands for no byte that is no UTF-8', async () => {
  const replaced = { ...newCredentials(), password: '\u{fffd}'.repeat(10) }
  expect(201, await api.register(replaced))
  expect(200, await api.login(replaced))
  const route = { method: 'POST', url: `${api.url}/v1/login`, headers: {} }
  assertProblem(await send(route, bodyWith({ ...replaced }, Array<number>(10).fill(0xff))), 400, 'malformed_request')
})

test('members that would change what an object is are refused, also where they are escaped', async () => {
  for (const body of [
    '{"__proto__":{"email":"x"}}',
    '{"\\u005f_proto__":{"email":"x"}}',
    '{"constructor":{"prototype":{"email":"x"}}}',
  ]) {
    for (const route of routes) {
      assertProblem(await send(route, Uint8Array.from(Buffer.from(body))), 400, 'malformed_request')
    }
  }
})
