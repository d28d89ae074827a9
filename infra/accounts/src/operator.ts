// The command `pnpm accounts operator`: a line of OPS_OPERATORS_FILE.
import { readFile, rename, writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { normalizePassword } from '@spillway/api/credentials'
import { isWeak, OPERATOR_PASSWORD_LENGTH, parseOperators, roles } from '@spillway/api/operators'
import type { Passwords } from '@spillway/client'
import { parseCommandLine, UserError } from '@spillway/infra/processes/command-line'

const help = `pnpm accounts operator NAME --role ${roles.join('|')} [--file FILE]

Makes the line of an operator: name, role and a hash of the password, which is asked for, or read from standard input.

  --role ROLE    viewer looks; support helps people and pauses, resumes and retries; admin may do everything
  --file FILE    the file in which the line is put, in place of an older one [OPS_OPERATORS_FILE; without it the line is printed]
  --help         prints this
`

const options = { role: { type: 'string' }, file: { type: 'string' } } as const

interface Surroundings {
  env: NodeJS.ProcessEnv
  passwords: Passwords
  log(text: string): void
  input: NodeJS.ReadableStream & { isTTY?: boolean }
}

export async function operator(args: readonly string[], { env, passwords, log, input }: Surroundings): Promise<void> {
  const { values, positionals } = parseCommandLine('pnpm accounts operator', args, options, { allowPositionals: true })
  if (values.help) return log(help)
  const [name = ''] = positionals.length === 1 ? positionals : []
  const { role, file = env.OPS_OPERATORS_FILE } = values
  const before = file ? await readFile(file, 'utf8').catch(() => '') : ''
  const others = before.split('\n').filter((line) => line !== '' && !line.startsWith(`${name}:`))
  const withHash = (hash: string) => [...others, `${name}:${role}:${hash}`, ''].join('\n')
  try {
    parseOperators(withHash('$argon2id$any'))
  } catch (error) {
    const problem = error instanceof Error && others.length > 0 ? `${error.message}. ` : ''
    throw new UserError(
      `${problem}Say operator NAME --role ${roles.join('|')}; a name has letters, digits and ._@+- only.`,
    )
  }
  const password = await readPassword(input)
  if (isWeak(password))
    throw new UserError(`The password must have ${OPERATOR_PASSWORD_LENGTH} characters, and be no common one.`)
  const hash = await passwords.hash(normalizePassword(password))
  if (!file) return log(withHash(hash).trim())
  // Gateways read it at any time: never a part of it.
  await writeFile(`${file}.new`, withHash(hash), { mode: 0o600 })
  await rename(`${file}.new`, file)
  log(`${name} is in ${file}. Gateways that read it know at once.`)
}

async function readPassword(input: Surroundings['input']): Promise<string> {
  if (input.isTTY !== true) return (await text(input)).replace(/\r?\n$/, '')
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input, output: silent, terminal: true })
  const ask = async (what: string) => {
    process.stderr.write(`${what}: `)
    const answer = await lines.question('')
    process.stderr.write('\n')
    return answer
  }
  const password = await ask('Password')
  const again = await ask('The same again')
  lines.close()
  if (password !== again) throw new UserError('The two passwords differ.')
  return password
}
