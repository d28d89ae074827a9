/** bcrypt in this process, for functions that return the hash: nothing else can keep their promise. Loads the code when it is used. */
import { createRequire } from 'node:module'
import { PasswordsError } from '../application/passwords-error.js'
import { type BcryptSetting, bcryptSetting, decodeBcrypt } from '../protocol/setting.js'

/** Version 1 of @node-rs/bcrypt. */
interface Implementation {
  hashSync(password: Uint8Array, cost: number, salt: Uint8Array): string
}

let implementation: Implementation | undefined
let hasWarned = false

/** The digest of what is read of a password. Warns once. */
export function digestInPlace(password: Buffer, setting: BcryptSetting): string {
  if (!hasWarned) {
    hasWarned = true
    const message = 'hashSync and compareSync hash on the event loop of this process: use hash and compare'
    process.emitWarning(message, { type: 'SpillwayWarning', code: 'SPILLWAY_SYNC' })
  }
  implementation ??= load()
  return implementation
    .hashSync(password, setting.cost, decodeBcrypt(setting.salt))
    .slice(bcryptSetting(setting).length)
}

function load(): Implementation {
  try {
    return createRequire(import.meta.url)('@node-rs/bcrypt')
  } catch (cause) {
    const message = 'install @node-rs/bcrypt, an optional dependency of @spillway/client, for hashSync and compareSync'
    throw new PasswordsError('not_installed', message, { cause })
  }
}
