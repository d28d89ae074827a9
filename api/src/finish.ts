/** Finishing an operation whose kind only its ticket knows. */
import type { Login } from './login.js'
import type { Finish, Operation, Outcome } from './operations.js'
import type { PasswordChange } from './password-change.js'
import type { Registration } from './registration.js'

export function finishAny(deps: {
  registration: Registration
  login: Login
  passwordChange: PasswordChange
}): Finish<Operation, Outcome> {
  return async (operation, jobId, verdict) => {
    switch (operation.kind) {
      case 'register':
        return deps.registration.finish(operation, jobId, verdict)
      case 'login':
        return deps.login.finish(operation, jobId, verdict)
      case 'change_password':
        return deps.passwordChange.finish(operation, jobId, verdict)
    }
  }
}
