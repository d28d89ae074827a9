// An application that is an ES module, type-checked strictly.
import { createPasswords, type HashPolicy, PasswordsError, type PasswordsErrorCode } from '@spillway/client'

const policy: HashPolicy = { algorithm: 'bcrypt', cost: 5 }
const passwords = createPasswords({
  redis: process.env.REDIS_URL,
  sealKeys: process.env.SPILLWAY_SEAL_KEYS,
  queuePrefix: process.env.QUEUE_PREFIX,
  policy,
  waitMs: 60_000,
})
const stored: string = await passwords.hash('correct horse')
const isRight: boolean = await passwords.verify('correct horse', stored, { deadline: Date.now() + 60_000 })
const isWrong: boolean = await passwords.verify('wrong', stored)
// Of crypt(3): a thread of its own computes it.
const isForeign: boolean = await passwords.verify(
  'correct horse',
  '$5$rounds=1000$saltsalt$R6e4P8ccT9iMqkYg7Z8YtpId/lfsIfnuPkp8WXposU8',
)
let code: PasswordsErrorCode | undefined
try {
  await passwords.verify('correct horse', stored, { deadline: 0 })
} catch (error) {
  if (error instanceof PasswordsError) code = error.code
}
console.log(JSON.stringify([stored.slice(0, 7), isRight, isWrong, isForeign, code, passwords.capacity().by]))
await passwords.close()
