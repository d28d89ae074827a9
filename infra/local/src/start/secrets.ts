// The secrets of local runs: generated once, kept in the ignored folder, readable by their owner
// alone.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from '../processes/command-line.ts'

const names = ['sealKeys', 'jwtKeys', 'opsPassword', 'servicesPassword'] as const

export type Secrets = Record<(typeof names)[number], string>

export function loadSecrets(dir: string): Secrets {
  const file = join(dir, 'secrets.json')
  if (existsSync(file)) return read(file)
  if (existsSync(join(dir, 'postgres'))) {
    throw new UserError(`${file} is gone, and with it the password of the database: start again with --fresh.`)
  }
  const secrets: Secrets = {
    sealKeys: newSealKey('local'),
    jwtKeys: newSigningKey('local'),
    opsPassword: randomBytes(12).toString('base64url'),
    servicesPassword: randomBytes(12).toString('base64url'),
  }
  writeFileSync(file, `${JSON.stringify(secrets, undefined, 2)}\n`, { mode: 0o600 })
  return secrets
}

function read(file: string): Secrets {
  try {
    const found: Secrets = JSON.parse(readFileSync(file, 'utf8'))
    if (names.every((name) => typeof found[name] === 'string')) return found
  } catch {
    // Reported below.
  }
  throw new UserError(`${file} is damaged: start again with --fresh.`)
}

export function newSealKey(kid = 'seal-1'): string {
  return `${kid}:${randomBytes(32).toString('base64')}`
}

const keyPairs = {
  EdDSA: () => generateKeyPairSync('ed25519'),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }),
}

/** One entry of SPILLWAY_JWT_KEYS. Every verifier with discovery takes P-256. */
export function newSigningKey(kid = 'sign-1', alg: keyof typeof keyPairs = 'ES256'): string {
  const { privateKey } = keyPairs[alg]()
  return `${kid}:${privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')}`
}
