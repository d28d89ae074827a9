// What the page of recipes shows for Auth.js, Lucia and packages below a dependency, run as it stands there with the packed package.
import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'vitest'
import { env, install, run, skip } from '../installed.ts'

const readme = await readFile(new URL('../../recipes/README.md', import.meta.url), 'utf8')
const INSTALL_TIMEOUT_MS = 300_000

/** What the page shows, by the names that its comments give (`// instead/argon2/index.js, …`). */
const parts = [...readme.matchAll(/^```js\n(.*?)^```/gms)].flatMap(([, block = '']) =>
  block.split(/^\/\/ (?=\S+\.js)/m),
)
const files = new Map(parts.map((part) => [/^[\w./-]+/.exec(part)?.[0] ?? '', part.replace(/^.*\n/, '')]))

async function program(name: string, text: string, given: readonly string[] = []): Promise<string> {
  for (const file of given) await writeFile(join(application, file), files.get(file) ?? assert.fail(`no ${file}`))
  await writeFile(join(application, name), text)
  return join(application, name)
}

const { answersOf, application } = await install(['@auth/core@0.41.3', 'lucia@3.2.2'])

test.skipIf(skip)('Auth.js opens a session for a right password alone', async () => {
  await writeFile(join(application, 'users.js'), 'export const users = new Map()\n')
  const main = `
import { Auth, skipCSRFCheck } from '@auth/core'
import { credentials, register } from './authjs.js'
await register('ada@example.com', 'correct horse')
const logger = { error() {} }
const config = { providers: [credentials], secret: 'x'.repeat(32), trustHost: true, basePath: '/auth', skipCSRFCheck, logger }
const login = async (email, password) => {
  const body = new URLSearchParams({ email, password })
  const answer = await Auth(new Request('http://localhost/auth/callback/credentials', { method: 'POST', body }), config)
  return answer.headers.getSetCookie().some((cookie) => cookie.startsWith('authjs.session-token='))
}
const tried = [['ada@example.com', 'correct horse'], ['ada@example.com', 'wrong'], ['eve@example.com', 'correct horse']]
console.log(JSON.stringify(await Promise.all(tried.map(([email, password]) => login(email, password)))))
`
  assert.deepEqual(await answersOf(await program('authjs-main.js', main, ['authjs.js'])), [true, false, false])
})

test.skipIf(skip)('what Lucia stored is verified, and what is stored after it', async () => {
  const main = `
import { LegacyScrypt, Scrypt } from 'lucia'
import { scrypt } from './lucia.js'
const stored = [await new Scrypt().hash('ﬁne 1 pass'), await new LegacyScrypt().hash('ﬁne 1 pass'), await scrypt.hash('ﬁne 1 pass')]
const answers = stored.flatMap((hash) => [scrypt.verify(hash, 'ﬁne 1 pass'), scrypt.verify(hash, 'wrong')])
console.log(JSON.stringify(await Promise.all(answers)))
`
  const right = [true, false]
  assert.deepEqual(await answersOf(await program('lucia-main.js', main, ['lucia.js'])), [...right, ...right, ...right])
})

test.skipIf(skip)(
  'overrides of npm put the replacements below a dependency that asks for argon2 and bcryptjs',
  { timeout: INSTALL_TIMEOUT_MS },
  async () => {
    const framework = join(application, 'framework')
    const dependencies = { argon2: '0.44.0', bcryptjs: '2.4.3' }
    await mkdir(framework)
    await writeFile(
      join(framework, 'package.json'),
      JSON.stringify({ name: 'framework', version: '1.0.0', dependencies }),
    )
    const hashing = "module.exports = { argon2: require('argon2'), bcrypt: require('bcryptjs') }"
    await writeFile(join(framework, 'index.js'), hashing)
    for (const [name, version] of Object.entries(dependencies)) {
      const folder = `instead/${name}`
      await mkdir(join(application, folder), { recursive: true })
      await writeFile(join(application, folder, 'package.json'), JSON.stringify({ name, version }))
      await program(`${folder}/index.js`, files.get(`${folder}/index.js`) ?? assert.fail(`no ${folder}`))
    }
    const [json = ''] = /^\{\n.*?"overrides".*?^\}/ms.exec(readme) ?? []
    const { overrides } = JSON.parse(json)
    const own = JSON.parse(await readFile(join(application, 'package.json'), 'utf8'))
    const wanted = { ...own, overrides, dependencies: { ...own.dependencies, framework: 'file:./framework' } }
    await writeFile(join(application, 'package.json'), JSON.stringify(wanted))
    const options = ['--no-audit', '--no-fund', '--install-links=false']
    await run('npm', ['install', ...options], { cwd: application, env, timeout: INSTALL_TIMEOUT_MS })
    const main = `
import framework from 'framework'
const { argon2, bcrypt } = framework
const strings = [await argon2.hash('x'), await bcrypt.hash('x', 4)]
const isRight = [await argon2.verify(strings[0], 'x'), await bcrypt.compare('x', strings[1]), await bcrypt.compare('y', strings[1])]
console.log(JSON.stringify([...strings.map((hash) => hash.slice(0, 4)), ...isRight, typeof argon2.close, typeof bcrypt.close]))
`
    const answers = await answersOf(await program('framework-main.js', main))
    assert.deepEqual(answers, ['$arg', '$2b$', true, true, false, 'function', 'function'])
  },
)
