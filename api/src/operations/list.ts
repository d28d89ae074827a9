/** The operations of the public API. Routes, tickets, metrics labels and OpenAPI follow from the list. */
import { changeEmail } from './change-email.js'
import { changePassword } from './change-password.js'
import { deleteAccount } from './delete-account.js'
import type { Deps } from './deps.js'
import { login } from './login.js'
import type { Operation } from './operation.js'
import { register } from './register.js'
import { resetPassword } from './reset-password.js'
import { verifyPassword } from './verify-password.js'

export const operations: readonly Operation<Deps>[] = [
  ...[register, login, changePassword, resetPassword],
  ...[changeEmail, verifyPassword, deleteAccount],
]
