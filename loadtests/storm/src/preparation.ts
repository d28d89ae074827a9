// Before a storm: a login that works and probes that work, so that a mistake is told in a sentence instead of thousands of errors.
import type { Answer, Connections } from './ask.ts'
import { isWorking } from './probes.ts'
import { beginningOf } from './redact.ts'
import { forUser, type HttpRequest, nameOf } from './request.ts'
import { UsageError } from './usage-error.ts'

interface LoginTrial {
  users: number
  isExpected(status: number): boolean
}

/** Logs in the first user and the last, who is missing where there are fewer accounts than users. Throws a UsageError. */
export async function tryLogins(connections: Connections, login: HttpRequest, { users, isExpected }: LoginTrial) {
  for (const user of new Set([1, users])) {
    const request = forUser(login, user)
    const answer = await connections.ask(request)
    if (answer.status !== undefined && isExpected(answer.status)) continue
    throw new UsageError(`Nothing was stormed: user ${user} cannot log in. ${said(request, answer)}`)
  }
}

/** Asks each once. Throws a UsageError. */
export async function tryProbes(connections: Connections, probes: readonly HttpRequest[]): Promise<void> {
  for (const probe of probes) {
    const answer = await connections.ask(probe)
    if (!isWorking(answer.status))
      throw new UsageError(`Nothing was stormed: a probe does not work. ${said(probe, answer)}`)
  }
}

function said(request: HttpRequest, { status, failure, text }: Answer): string {
  if (status === undefined) return `${nameOf(request)} was not answered (${failure}).`
  const beginning = beginningOf(text, request)
  return `${nameOf(request)} was answered with ${status}${beginning === '' ? '.' : `: ${beginning}`}`
}
