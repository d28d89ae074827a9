/** A change of password without HTTP: one job verifies the current password and hashes the next. */
import type { Database } from '@spillway/prisma'
import { normalizePassword } from './credentials.js'
import { ApiError } from './errors.js'
import type { CheckNewPassword } from './new-password.js'
import type { ChangePasswordOperation, Finish, PasswordChanged, Started, Submit } from './operations.js'
import type { Sessions } from './sessions.js'

export interface PasswordChange {
  start(
    input: {
      userId: string
      sessionId: string
      currentPassword: string
      newPassword: string
    },
    submit: Submit,
  ): Promise<Started<ChangePasswordOperation>>
  finish: Finish<ChangePasswordOperation, PasswordChanged>
}

export function createPasswordChange(deps: {
  database: Database
  sessions: Sessions
  checkPassword: CheckNewPassword
}): PasswordChange {
  const { database, sessions, checkPassword } = deps
  return {
    async start({ userId, sessionId, currentPassword, newPassword }, submit) {
      const user = await sessions.userOf({ sessionId, userId })
      if (user === undefined) throw new ApiError('invalid_token')
      checkPassword({ field: 'newPassword', password: newPassword, email: user.email })
      const pending = await submit('verify', {
        password: normalizePassword(currentPassword),
        storedHash: user.passwordHash,
        nextPassword: normalizePassword(newPassword),
      })
      return {
        operation: { kind: 'change_password', userId, sessionId, credentialVersion: user.credentialVersion },
        pending,
      }
    },

    async finish({ userId, sessionId, credentialVersion }, _jobId, verdict) {
      if (verdict.kind !== 'match' || verdict.hash === undefined)
        throw new ApiError('invalid_credentials', { reason: 'wrong_password' })
      const data = { passwordHash: verdict.hash, credentialVersion: { increment: 1 } }
      // Both or neither: a new password that leaves a thief's session alive would be believed to have ended it.
      await database.$transaction(async (transaction) => {
        const { count } = await transaction.user.updateMany({ where: { id: userId, credentialVersion }, data })
        if (count === 0) {
          // Changed meanwhile: by this very ticket, or by another, and what was verified is no longer the password.
          const user = await transaction.user.findUnique({ where: { id: userId }, select: { passwordHash: true } })
          if (user?.passwordHash === verdict.hash) throw new ApiError('ticket_used')
          throw new ApiError('invalid_credentials', { reason: 'password_changed' })
        }
        await sessions.endOthers({ userId, keptSessionId: sessionId }, transaction)
      })
      return { status: 204, body: null }
    },
  }
}
