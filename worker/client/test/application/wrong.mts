// Each of these lines is an error of types; where the types are any, none is.
import { createPasswords } from '@spillway/client'
import argon2 from '@spillway/client/argon2'
import bcrypt from '@spillway/client/bcrypt'

const passwords = createPasswords({ policy: { algorithm: 'md5' } })
const result: string = await passwords.verify('correct horse', 'a hash')
await passwords.hash(42)
passwords.verifySync('correct horse', 'a hash')
createPasswords({ rehash: true })
const isRight: string = await bcrypt.compare('correct horse', 'a hash')
await bcrypt.hash('correct horse')
await argon2.hash('correct horse', { type: 'argon2id' })
console.log(result, isRight)
