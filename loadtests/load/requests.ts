// What autocannon's callers send.
import type { Client, Request } from 'autocannon'
import type { Accounts, Credential } from './accounts.ts'

/** Tells one of autocannon's callers what to send, over and over. */
export type Caller = (client: Client, number: number) => void

/** Logs in to an account of its own. */
export function loginCaller(accounts: Accounts, credential: Credential): Caller {
  return (client, number) => {
    const login = post('/v1/login', accounts.login(credential, number))
    converse(client, login, () => login)
  }
}

/** Registers, logs in to the new account, and writes: it ends its session. Starts over when something went wrong. */
export function visitCaller(accounts: Accounts): Caller {
  return (client) => {
    let account = accounts.registration()
    const register = () => {
      account = accounts.registration()
      return post('/v1/users', account)
    }
    converse(client, post('/v1/users', account), (status, body) => {
      if (status === 201) return post('/v1/login', account)
      if (status === 200) return post('/v1/logout', { refreshToken: JSON.parse(body).refreshToken })
      return register()
    })
  }
}

/**
 * Sends a request, and after each answer the next one. A ticket is redeemed until there is a verdict, at once each time: a
 * redeem is held by the gateway as the call before it was.
 */
function converse(client: Client, first: Request, next: (status: number, body: string) => Request): void {
  const onResponse = (status: number, body: string) => {
    const request =
      status === 202 ? post('/v1/tickets/redeem', { ticket: JSON.parse(body).ticket }) : next(status, body)
    client.setRequests([{ ...request, onResponse }])
  }
  client.setRequests([{ ...first, onResponse }])
}

function post(path: string, body: unknown): Request {
  return { method: 'POST', path, body: JSON.stringify(body) }
}
