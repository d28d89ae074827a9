/** Every operation there is. */
import { changePassword } from './change-password.js'
import { login } from './login.js'
import type { Operation } from './operation.js'
import { register } from './register.js'
import { verifyPassword } from './verify-password.js'

export const operations: readonly Operation[] = [register, login, changePassword, verifyPassword]
