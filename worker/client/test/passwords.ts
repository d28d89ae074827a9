// What tests of an application's passwords share.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createPasswordsWith, type ExactPasswords } from '@spillway/client/application/create-passwords'
import { PasswordsError, type PasswordsErrorCode } from '@spillway/client/application/passwords-error'
import type { PasswordsOptions } from '@spillway/client/application/types'
import { policy, sealKeys } from '../../test/parts.ts'
import type { Space } from '../../test/space.ts'

/** The process beside an application, as it is compiled here. */
export const besideProgram = new URL('../../dist/beside.cjs', import.meta.url)
/** With a queue no process is started. */
export const noProgram = new URL('file:///nowhere/beside.cjs')

/** Openwall's vector of "U*U", at cost 5. */
export const bcryptHash = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'

/** A policy that takes next to no time. */
export const argon2id = { algorithm: 'argon2id', ...policy } as const

/** A log of applications that drops its lines. */
export const silent = { error() {}, warn() {}, info() {}, debug() {} }

/** The processes beside this one. */
export async function besides(): Promise<number[]> {
  const children = await readFile(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
  const pids = children.split(' ').filter(Boolean).map(Number)
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return pids.filter((_, n) => lines[n]?.includes('beside.cjs'))
}

/** Passwords on the queue of a space, closed with it. */
export function passwordsOf(space: Space, options: PasswordsOptions = {}, program = noProgram): ExactPasswords {
  const { redisUrl: redis, prefix: queuePrefix } = space
  const passwords = createPasswordsWith(program, {
    ...{ redis, queuePrefix, sealKeys, policy: argon2id, waitMs: 60_000, log: silent },
    ...options,
  })
  space.closing(() => passwords.close())
  return passwords
}

export async function rejectsWith(code: PasswordsErrorCode, call: Promise<unknown>): Promise<PasswordsError> {
  const error = await call.then(
    (value) => assert.fail(`was answered ${String(value)} instead of ${code}`),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof PasswordsError, String(error))
  assert.equal(error.code, code)
  return error
}
