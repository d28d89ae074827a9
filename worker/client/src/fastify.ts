/** `@spillway/client/fastify`: a plugin with `app.passwords`, closed with the application. */
import type { FastifyPluginCallback } from 'fastify'
import { createPasswords, type Passwords, PasswordsError, type PasswordsOptions } from './index.js'

declare module 'fastify' {
  interface FastifyInstance {
    passwords: Passwords
  }
}

/** Takes the options of `createPasswords` [none]. It logs to the log of the application. */
export const spillway: FastifyPluginCallback<PasswordsOptions> = (app, options, done) => {
  const passwords = createPasswords({ log: app.log, ...options })
  app.decorate('passwords', passwords)
  // Closed after the server, so that running requests are still answered.
  app.addHook('onClose', () => passwords.close())
  // An error handler of the application's own need not know of Retry-After.
  app.addHook('onError', async (_request, reply, error) => {
    if (error instanceof PasswordsError) reply.headers(error.headers)
  })
  done()
}

/** As fastify-plugin does: the decorator belongs to the whole application. */
const name = '@spillway/client'
Object.assign(spillway, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: name,
  [Symbol.for('plugin-meta')]: { name, fastify: '5.x' },
})
