// The requests of autocannon's callers.
import type { Request } from 'autocannon'
import type { Accounts, Credential } from './accounts.ts'

/** Each caller logs in to an account of its own, over and over. */
export function loginRequests(accounts: Accounts, credential: Credential): (caller: number) => Request[] {
  return (caller) => [{ method: 'POST', path: '/v1/login', body: JSON.stringify(accounts.login(credential, caller)) }]
}

interface Visit {
  login?: string
  refreshToken?: string
}

/**
 * Each caller registers, logs in to the new account, and writes (it ends its session), over and over. autocannon gives
 * a caller a fresh context each time around.
 */
export function visitRequests(accounts: Accounts): (caller: number) => Request[] {
  const visitOf = (context: object): Visit => context
  return () => [
    {
      method: 'POST',
      path: '/v1/users',
      setupRequest: (request, context) => {
        const login = JSON.stringify(accounts.registration())
        visitOf(context).login = login
        return { ...request, body: login }
      },
    },
    {
      method: 'POST',
      path: '/v1/login',
      setupRequest: (request, context) => ({ ...request, body: visitOf(context).login }),
      onResponse: (status, body, context) => {
        if (status === 200) visitOf(context).refreshToken = JSON.parse(body).refreshToken
      },
    },
    {
      method: 'POST',
      path: '/v1/logout',
      setupRequest: (request, context) => ({
        ...request,
        body: JSON.stringify({ refreshToken: visitOf(context).refreshToken ?? 'none' }),
      }),
    },
  ]
}
