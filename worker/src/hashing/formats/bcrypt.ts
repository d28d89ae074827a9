/** bcrypt in the modular crypt format: `2a`, `2b` and PHP's `2y`, and the older `2` and `2x`. */
import { decodeBcrypt, encodeBcrypt } from '@spillway/queue/wire/setting'
import type { BcryptRecipe } from '../methods/recipe.js'
import type { Format } from './format.js'

const PATTERN = /^\$(2[abxy]?)\$(\d{2})\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})$/
const COST_MIN = 4
const COST_MAX = 31

export const bcrypt: Format = {
  name: 'bcrypt',
  makers: 'PHP, bcrypt of npm, Spring Security, Devise, Laravel, Supabase, Auth0, crypt(3)',
  read(text) {
    const recipe = bcryptRecipe(text)
    return recipe && { recipes: [recipe] }
  },
}

export function bcryptRecipe(text: string): BcryptRecipe | undefined {
  const [, version, digits, salt = '', digest = ''] = PATTERN.exec(text) ?? []
  const cost = Number(digits)
  if (version === undefined || cost < COST_MIN || cost > COST_MAX) return undefined
  if (encodeBcrypt(decodeBcrypt(digest)) !== digest) return undefined
  const variant = version === '2' || version === '2x' ? version : '2b'
  // Old versions of passlib set spare bits of the salt's last character.
  return { method: 'bcrypt', variant, cost, salt: encodeBcrypt(decodeBcrypt(salt)), digest }
}
