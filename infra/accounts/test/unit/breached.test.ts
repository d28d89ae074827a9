// Lists of breached passwords: made from the public list's format by `pnpm accounts breached`, and
// refused by a gateway.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PasswordList } from '@spillway/api/breached-list'
import { fold } from '@spillway/api/credentials'
import { commonListFile, commonPasswords, breached as run, writeCommonList } from '@spillway/infra/accounts/breached'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { afterAll, test } from 'vitest'

const dir = await scratchDir({ onTestFinished: afterAll })

const sha1 = (password: string) => createHash('sha1').update(password).digest('hex').toUpperCase()
const listed = (n: number) => `listed ${n}`

/** A file in the format of the public list; the n-th password was found n + 1 times. */
async function publicList(name: string, passwords: string[], eol = '\r\n'): Promise<string> {
  const file = join(dir, name)
  const lines = passwords.map((password, n) => `${sha1(password)}:${n + 1}`).sort()
  await writeFile(file, lines.join(eol))
  return file
}

const breached = (...args: string[]) => run(args, () => undefined)

async function build(file: string, ...args: string[]) {
  const out = join(dir, `${Math.random()}.list`)
  await breached('build', file, '--out', out, ...args)
  return { out, list: new PasswordList(out), bytes: (await stat(out)).size }
}

const passwords = Array.from({ length: 10_000 }, (_, n) => listed(n))
const others = passwords.map((_, n) => `other ${n}`)
const whole = await publicList('whole.txt', passwords)

test('every password of the list is found, and of others one in a million', async () => {
  const { list, bytes } = await build(whole, '--min-count', '1')
  for (const password of passwords) assert.ok(list.has(password), password)
  // Without the header.
  assert.equal((bytes - 256) / passwords.length, 6)
  assert.deepEqual(
    others.filter((password) => list.has(password)),
    [],
  )
})

test('the most frequent ones are taken', async () => {
  const { list } = await build(whole, '--min-count', '9851')
  assert.deepEqual(
    passwords.filter((password) => list.has(password)),
    passwords.slice(-150),
  )
})

test('what is no list of the public format is refused by its line, and leaves no file', async () => {
  const sorted = ['a', 'b'].map(sha1).sort()
  const cases: [content: string, complaint: RegExp][] = [
    [`${sorted[0]}:1\nhello\n`, /Line 2 of .* is not SHA1:count/],
    [`${sorted[1]}:1\n${sorted[0]}:1\n`, /Line 2 of .* is out of order/],
    [`${'0'.repeat(32)}:1\n`, /Line 1 of .* is not SHA1:count/],
    ['', /No password is left/],
  ]
  for (const [content, complaint] of cases) {
    const file = join(dir, 'bad.txt')
    await writeFile(file, content)
    const out = join(dir, 'bad.list')
    await assert.rejects(breached('build', file, '--min-count', '1', '--out', out), {
      name: 'UserError',
      message: complaint,
    })
    await assert.rejects(stat(out))
    await assert.rejects(stat(`${out}.unfinished`))
  }
  for (const args of [['build', whole], ['build', join(dir, 'none'), '--min-count', '1', '--out', 'x'], ['burn']])
    await assert.rejects(breached(...args), { name: 'UserError' })
})

test('a list that is missing, cut, changed or something else is refused', async () => {
  const { out } = await build(whole, '--min-count', '9001')
  const content = await readFile(out)
  const changed = Buffer.from(content)
  changed.writeUInt8(changed.readUInt8(700) ^ 1, 700)
  const cases: [content: Buffer, complaint: RegExp][] = [
    [changed, /damaged/],
    [content.subarray(0, -5), /damaged/],
    [content.subarray(0, 100), /no list/],
    [await readFile(whole), /no list/],
  ]
  for (const [bad, complaint] of cases) {
    const file = join(dir, 'damaged.list')
    await writeFile(file, bad)
    assert.throws(() => new PasswordList(file), complaint)
  }
  assert.throws(() => new PasswordList(join(dir, 'none.list')), /cannot be read/)
})

test('the list that ships has every common password, and is what the command makes', async () => {
  const list = new PasswordList(commonListFile)
  assert.ok(commonPasswords.length > 45_000)
  // A part of them, for the time that it takes: the list is compared below.
  for (let n = 0; n < commonPasswords.length; n += 5) assert.ok(list.has(fold(commonPasswords[n] ?? '')), `${n}`)
  const again = join(dir, 'common.list')
  await writeCommonList(again)
  assert.ok((await readFile(again)).equals(await readFile(commonListFile)), 'make it by: pnpm accounts breached common')
})
