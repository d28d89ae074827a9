/**
 * Symfony's MessageDigestPasswordEncoder with its defaults, SHA-512 of 5,000 rounds in base64. Its salt
 * is in a column of its own. A stored hash is `$symfony$<salt>$<digest>`, the salt in base64url, as
 * `pnpm accounts import --hash symfony --salt-column NAME` writes it.
 */
import { formatOf } from './format.js'
import { plainRecipe } from './plain.js'

export const symfony = formatOf(
  'Symfony message digest',
  'Symfony 2 to 5, FOSUserBundle, Clerk (sha512_symfony)',
  /^\$symfony\$([A-Za-z0-9_-]{0,256})\$([A-Za-z0-9+/]{86}==)$/,
  ([encoded, digest]) => {
    const salt = Buffer.from(encoded, 'base64url')
    // Symfony adds the salt in braces, where there is one.
    const braced = salt.length === 0 ? salt : Buffer.concat([Buffer.from('{'), salt, Buffer.from('}')])
    const program = { digest: 'sha512', salt: braced, place: 'after', rounds: 5_000, behind: 'input' } as const
    return plainRecipe(program, digest, 'base64')
  },
)

export function symfonyHash(salt: Buffer, digest: string): string {
  return `$symfony$${salt.toString('base64url')}$${digest}`
}
