// Credentials of Keycloak's export of a realm, as stored hashes.
import { unpadded } from '@spillway/client/protocol/base64'
import { textAt, textOf } from './fields.ts'
import { isRecord } from './records.ts'

/** Undefined without a password. A credential of an unknown algorithm is a text of no format. */
export function keycloakHash(credentials: unknown): string | undefined {
  if (!Array.isArray(credentials)) return undefined
  const password = credentials.filter(isRecord).find(({ type }) => type === 'password')
  if (password === undefined) return undefined
  const [secret, data] = [objectOf(password.secretData), objectOf(password.credentialData)]
  const [value = '', saltText = ''] = [textAt(secret, 'value'), textAt(secret, 'salt')]
  const [salt, key] = [Buffer.from(saltText, 'base64'), Buffer.from(value, 'base64')]
  const algorithm = textAt(data, 'algorithm') ?? ''
  const rounds = textAt(data, 'hashIterations') ?? ''
  if (algorithm === 'argon2') {
    // Parameters are lists of one text.
    const of = (name: string) =>
      textOf([data.additionalParameters].filter(isRecord).flatMap((all) => all[name])[0]) ?? ''
    const version = of('version') === '1.0' ? 16 : 19
    const cost = `m=${of('memory')},t=${rounds},p=${of('parallelism')}`
    return `$argon2${of('type')}$v=${version}$${cost}$${unpadded(salt)}$${unpadded(key)}`
  }
  const digest = algorithm === 'pbkdf2' ? 'sha1' : algorithm.replace(/^pbkdf2-/, '')
  return `$pbkdf2-${digest}$i=${rounds},l=${key.length}$${unpadded(salt)}$${unpadded(key)}`
}

/** Text that is JSON, or what it holds already. */
function objectOf(value: unknown): Record<string, unknown> {
  if (isRecord(value)) return value
  try {
    const parsed: unknown = typeof value === 'string' ? JSON.parse(value) : undefined
    return isRecord(parsed) ? parsed : {}
  } catch {
    return {}
  }
}
