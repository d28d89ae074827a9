// The command line of a storm, and what it never repeats.
import assert from 'node:assert/strict'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '@spillway/infra/processes/command-line'
import { scratchDir } from '@spillway/infra/rig/namespace'
import { afterAll, describe, test } from 'vitest'
import { help, parseOptions } from '../../storm/src/command.ts'
import { beginningOf } from '../../storm/src/request.ts'

const dir = await scratchDir({ onTestFinished: afterAll })

const TARGET = ['--target', 'http://127.0.0.1:3000']
const LOGIN = [...TARGET, '--login', 'POST /login']
const parsed = (...args: string[]) => parseOptions(args, 'spillway-storm')

async function fileWith(text: string): Promise<string> {
  const file = join(await mkdtemp(join(dir, 'request-')), 'login.json')
  await writeFile(file, text)
  return file
}

describe('options', () => {
  test('have the defaults that the help names', async () => {
    const { login, probes, users, durationS, probesPerSecond, p99Ms, timeoutS, calmS, afterS } = await parsed(...LOGIN)
    assert.deepEqual([login.method, login.path, login.body, probes], ['POST', '/login', undefined, []])
    const named = [...help('spillway-storm').matchAll(/^ {2}--(\w+) n .*\[(\d+)\]$/gm)]
    assert.deepEqual(
      named.map(([, name, value]) => [name, Number(value)]),
      Object.entries({
        users,
        duration: durationS,
        rate: probesPerSecond,
        p99: p99Ms,
        timeout: timeoutS,
        calm: calmS,
        after: afterS,
      }),
    )
  })

  test('all are in the help', async () => {
    const text = help('spillway-storm')
    const options = 'target login body header request expect probe probe-header json report beyond-loopback'
    for (const option of options.split(' ')) assert.match(text, new RegExp(`^ {2}--${option} `, 'm'))
    assert.ok(text.split('\n').every((line) => line.length <= 120))
  })

  test('give a body the type that it looks like, unless one is given', async () => {
    const typeOf = async (...args: string[]) => (await parsed(...LOGIN, ...args)).login.headers['content-type']
    assert.equal(await typeOf('--body', '{"a": 1}'), 'application/json')
    assert.equal(await typeOf('--body', 'a=1'), 'application/x-www-form-urlencoded')
    assert.equal(await typeOf('--body', 'a', '--header', 'Content-Type: text/plain'), 'text/plain')
    assert.equal(await typeOf(), undefined)
  })

  test('and a file describe the same request', async () => {
    const body = '{"password":"{n}"}'
    const file = await fileWith(`{"method": "PUT", "path": "/in", "headers": {"X-A": "b"}, "body": ${body}}`)
    const byFlags = await parsed(...TARGET, '--login', 'PUT /in', '--body', body, '--header', 'x-a: b')
    assert.deepEqual((await parsed(...TARGET, '--request', file)).login, byFlags.login)
  })
})

describe('a mistake is told in one sentence that repeats nothing secret:', () => {
  const secret = 'hunter2'
  const wrong: [args: string[], sentence: RegExp][] = [
    [['--login', 'POST /login'], /^--target is missing/],
    [TARGET, /^--login or --request is missing/],
    [[...LOGIN, '--body', '{"password":', secret], /^Something stands alone, without an option/],
    [[...LOGIN, `--password=${secret}`], /^--password is unknown/],
    [[...TARGET, '--login', `POST login?password=${secret}`], /^--login takes a method and a path/],
    [[...LOGIN, '--header', secret], /^--header takes a name and a value/],
    [[...LOGIN, '--header', `authorization: ${secret}\u0000`], /^--header takes a name and a value/],
    [[...LOGIN, '--body', secret.repeat(10_000)], /^A body has at most 65536 bytes/],
    [[...LOGIN, '--users', '5001'], /^--users takes a whole number from 1 to 5000/],
    [[...LOGIN, '--duration', '61'], /^--duration takes/],
    [[...LOGIN, '--rate', '1e3'], /^--rate takes/],
    [[...LOGIN, '--timeout', '31'], /^--timeout takes/],
    [[...LOGIN, '--p99', '0'], /^--p99 takes/],
    [[...LOGIN, '--expect', '2xx'], /^--expect takes a whole number from 100 to 599/],
    [[...LOGIN, ...Array.from({ length: 9 }, () => ['--probe', '/a']).flat()], /^--probe is taken at most 8 times/],
    [[...LOGIN, '--request', 'a.json'], /^--request takes the place of/],
    [[...TARGET, '--request', '/nowhere.json'], /cannot be read/],
  ]
  const files: [text: string, sentence: RegExp][] = [
    [`{"path": "/login", "body": "${secret}`, /holds no JSON object/],
    [`["${secret}"]`, /holds no JSON object/],
    [`{"path": "/login", "password": "${secret}"}`, /has a field "password"/],
    [`{"body": "${secret}"}`, /needs a path/],
    [`{"path": "login ${secret}"}`, /^path in .* takes a method and a path/],
    [`{"path": "/login", "headers": {"a b": "${secret}"}}`, /^headers in .* takes a name and a value/],
  ]

  async function assertTold(args: readonly string[], sentence: RegExp): Promise<void> {
    await assert.rejects(parsed(...args), (error) => {
      assert.ok(error instanceof UserError)
      assert.match(error.message, sentence)
      assert.ok(!error.message.includes(secret) && !error.message.includes('\n'), error.message)
      return true
    })
  }
  for (const [args, sentence] of wrong) test(args.join(' ').slice(0, 100), () => assertTold(args, sentence))
  for (const [text, sentence] of files)
    test(text, async () => assertTold([...TARGET, '--request', await fileWith(text)], sentence))
})

describe('the beginning of an answer', () => {
  const request = {
    method: 'POST',
    path: '/login?key=in+query',
    headers: { authorization: 'Basic aHVudGVyMg==', cookie: 'a=first; b=second' },
    body: JSON.stringify({ user: { email: 'a@b.test' }, password: 'a "b" & <c>/ü' }),
  }

  for (const repeated of [
    'a "b" & <c>/ü',
    'a \\"b\\" & <c>/ü',
    'a%20%22b%22%20%26%20%3Cc%3E%2F%C3%BC',
    'a+%22b%22+%26+%3Cc%3E%2F%C3%BC',
    'a &quot;b&quot; &amp; &lt;c&gt;/ü',
    ...['a@b.test', 'aHVudGVyMg==', 'second', 'in query'],
  ]) {
    test(`hides ${repeated}`, () => {
      assert.equal(beginningOf(`wrong: <${repeated}>`, request), 'wrong: <[…]>')
    })
  }

  test('is one line of at most two hundred characters, cut after hiding', () => {
    const form = { ...request, body: 'user=me&password=swordfish' }
    const text = `${'x\n'.repeat(97)}\u001b]0;${form.body} swordfish swordfish`
    const shown = beginningOf(text, form)
    assert.ok(shown.length <= 201 && !/sword|\p{Cc}/u.test(shown), shown)
  })
})
