// Tests of an application under Jest: the replacements can be stubbed as the packages can, and hash in the process of the tests.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'vitest'
import { env, install, run, skip } from '../installed.ts'

const { application } = await install(['jest@30.5.2'])

const tests = `
const { readFileSync } = require('node:fs')
const argon2 = require('@spillway/client/argon2')
const bcrypt = require('@spillway/client/bcrypt')
const children = () => readFileSync('/proc/' + process.pid + '/task/' + process.pid + '/children', 'utf8').trim()
const cheap = { memoryCost: 64, timeCost: 1, parallelism: 1 }

test('hashes are made in this process', async () => {
  const before = children()
  const stored = await bcrypt.hash('right', 4)
  expect([await bcrypt.compare('right', stored), await bcrypt.compare('wrong', stored)]).toEqual([true, false])
  expect(await argon2.verify(await argon2.hash('right', cheap), 'right')).toBe(true)
  expect(children()).toBe(before)
})

test('functions are replaced by spies and by assignment, for all that require or import them', async () => {
  const spy = jest.spyOn(bcrypt, 'compare').mockResolvedValue(true)
  expect(await require('@spillway/client/bcrypt').compare('wrong', 'no hash')).toBe(true)
  expect(await require('@spillway/client/bcrypt').default.compare('wrong', 'no hash')).toBe(true)
  spy.mockRestore()
  expect(await bcrypt.compare('wrong', 'no hash')).toBe(false)
  const { hash } = argon2
  argon2.hash = async () => 'fake'
  expect(await require('@spillway/client/argon2').hash('right')).toBe('fake')
  argon2.hash = hash
  jest.spyOn(require('@spillway/client'), 'createPasswords').mockReturnValue('fake')
  expect(require('@spillway/client').createPasswords()).toBe('fake')
})

test('after jest.resetModules another instance hashes', async () => {
  jest.resetModules()
  const again = require('@spillway/client/bcrypt')
  expect(again).not.toBe(bcrypt)
  expect(await again.compare('right', await again.hash('right', 4))).toBe(true)
})
`

/** Each a file of its own: what a file requires is loaded for it alone. */
const leavesOneCall = {
  bcrypt: `void require('@spillway/client/bcrypt').hash('right', 4)`,
  argon2: `void require('@spillway/client/argon2').hash('right', { memoryCost: 64, timeCost: 1, parallelism: 1 })`,
  client: `void require('@spillway/client').createPasswords().hash('right')`,
}

test.skipIf(skip || process.platform !== 'linux')(
  'files of tests under Jest pass, also where a call is left without await, and end without being forced to',
  async () => {
    const folder = join(application, 'tests')
    await mkdir(folder)
    await writeFile(join(folder, 'passwords.test.js'), tests)
    for (const [name, call] of Object.entries(leavesOneCall))
      await writeFile(join(folder, `leaves-${name}.test.js`), `test('a call that nobody awaits', () => { ${call} })`)
    await writeFile(join(folder, 'package.json'), '{ "type": "commonjs" }')
    // With open handles that keep the process alive it would not end.
    await run(join(application, 'node_modules/.bin/jest'), ['--rootDir', folder, '--runInBand'], {
      cwd: folder,
      env,
      timeout: 120_000,
    })
  },
)
