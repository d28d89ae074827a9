// Secrets from files, for every setting that a schema marks as one.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

interface Settings {
  readonly properties: Readonly<Record<string, { readonly type: string; readonly writeOnly?: boolean }>>
}

/**
 * Fails unless each secret of the schema is read from the file of `NAME_FILE` as it is from `NAME`,
 * and a file beside a value, a missing and an empty one are each told by their names alone.
 *
 * @param env has a value for each secret
 */
export function assertSecretFiles(
  { properties }: Settings,
  env: NodeJS.ProcessEnv,
  read: (env: NodeJS.ProcessEnv) => object,
): void {
  const dir = mkdtempSync(join(tmpdir(), 'spillway-secrets-'))
  const file = join(dir, 'hush')
  const secrets = Object.keys(properties).filter((name) => properties[name]?.writeOnly)
  assert.ok(secrets.length > 1)
  try {
    for (const name of secrets) {
      const { [name]: value, ...others } = env
      const variable = `${name}_FILE`
      assert.ok(value, `${name} has no value here`)
      for (const [start, end] of [
        ['', ''],
        ['', '\n'],
        ['\ufeff', '\r\n'],
      ] as const) {
        writeFileSync(file, start + value + end)
        assert.deepEqual(read({ ...others, [name]: '', [variable]: file }), read(env), name)
      }
      const refused = (wrong: NodeJS.ProcessEnv, sentence: string) =>
        assert.throws(
          () => read({ ...others, ...wrong }),
          ({ message }: Error) => message.includes(sentence) && !message.includes(file) && !message.includes(value),
          `${name}: ${sentence}`,
        )
      refused({ [name]: value, [variable]: file }, `${name} and ${variable} are both set`)
      for (const text of [`\ufeff${value}`, value]) {
        writeFileSync(file, text, 'utf16le')
        refused({ [variable]: file }, `${variable} names a file that is not UTF-8`)
      }
      writeFileSync(file, '\n')
      refused({ [variable]: file }, `${variable} names an empty file`)
      refused({ [variable]: join(dir, 'none') }, `${variable} names a file that cannot be read (ENOENT)`)
      refused({ [variable]: dir }, `${variable} names a file that cannot be read (EISDIR)`)
    }
  } finally {
    rmSync(dir, { recursive: true })
  }
}
