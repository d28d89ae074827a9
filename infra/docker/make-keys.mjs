// Makes the keys of a local installation, each once: `node make-keys.mjs <folder>`. The settings
// `NAME_FILE` name the files. They are in a folder for each of those who may have them: `seal` for
// gateways and workers, `gateway` for gateways alone.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const [, , dir = '.'] = process.argv
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const files = {
  'seal/seal-keys': `local:${randomBytes(32).toString('base64')}\n`,
  'gateway/jwt-keys': `local:${privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')}\n`,
  'gateway/ops-password': `${randomBytes(12).toString('base64url')}\n`,
}
/** The user of the images. */
const UID = 1_000
for (const [name, content] of Object.entries(files)) {
  const file = join(dir, name)
  if (existsSync(file)) continue
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content, { mode: 0o400 })
  if (process.getuid?.() === 0) chownSync(file, UID, UID)
}
