// A program as a user of the API writes it, against types that were generated from the description: registers, logs in, and asks
// who that is. It is compiled and run by openapi-clients.test.ts.
import createClient from 'openapi-fetch'
import type { components, paths } from './api.js'

const [, , baseUrl = '', email = '', password = ''] = process.argv
const client = createClient<paths>({ baseUrl })
const account: components['schemas']['NewAccount'] = { email, password }

// @ts-expect-error: a body without a password is told before it is sent.
const incomplete: components['schemas']['Credentials'] = { email }

const registered = await client.POST('/v1/users', { body: account })
if (registered.error) throw new Error(`${registered.error.code}: ${registered.error.detail}`)

const refused = await client.POST('/v1/login', { body: { ...incomplete, password: 'not the right one' } })
const code: components['schemas']['Problem']['code'] | undefined = refused.error?.code
if (code !== 'invalid_credentials') throw new Error(`answered with ${code}`)

const { data: session, error } = await client.POST('/v1/login', { body: account })
if (error) throw new Error(error.code)
if ('ticket' in session) throw new Error(`to come back in ${session.retryAfter} s`)
const me = await client.GET('/v1/me', { headers: { authorization: `Bearer ${session.accessToken}` } })
console.log(me.data?.email)
