// Hashing in a process beside the server, by @spillway/client without Redis, as its README says.
import { createPasswordsWith } from '@spillway/client/application/create-passwords'
import { BCRYPT_COST } from '../hashing.ts'
import { announce, serve } from '../rival-server.ts'

// As compiled in this checkout; the package has it inside.
const program = new URL(import.meta.resolve('@spillway/worker/beside'))
const { hash, verify } = createPasswordsWith(program, {
  policy: { algorithm: 'bcrypt', cost: BCRYPT_COST },
  rehash: 'never',
})

announce(await serve({ hash: (password) => hash(password), verify }))
