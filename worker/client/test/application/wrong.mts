// Each of these lines is an error of types; where the types are any, none is.
import { createPasswords } from '@spillway/client'

const passwords = createPasswords({ policy: { algorithm: 'md5' } })
const verdict: string = await passwords.verify('correct horse', 'a hash')
await passwords.hash(42)
passwords.verifySync('correct horse', 'a hash')
createPasswords({ rehash: true })
console.log(verdict)
