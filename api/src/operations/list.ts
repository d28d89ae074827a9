/** The operations of the public API. Routes, tickets, metrics labels and OpenAPI follow from the list. */
import { changePassword } from './change-password.js'
import { login } from './login.js'
import type { Operation } from './operation.js'
import type { OperationDeps } from './public-operation.js'
import { register } from './register.js'
import { verifyPassword } from './verify-password.js'

export const operations: readonly Operation<OperationDeps>[] = [register, login, changePassword, verifyPassword]
