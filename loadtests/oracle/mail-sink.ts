// A mail server that takes every mail and keeps nothing.
import { once } from 'node:events'
import { SMTPServer } from 'smtp-server'

export async function startMailSink() {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    disableReverseLookup: true,
    logger: false,
    onData(stream, _session, done) {
      stream.resume().on('end', () => done())
    },
  }).on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const address = server.server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the mail server does not listen')
  return {
    /** Settings of a gateway that sends here. */
    env: {
      SMTP_URL: `smtp://127.0.0.1:${address.port}`,
      MAIL_FROM: 'no-reply@example.com',
      MAIL_CONFIRM_URL: 'https://app.example.com/confirm#{token}',
      MAIL_RESET_URL: 'https://app.example.com/reset#{token}',
    },
    async close(): Promise<void> {
      for (const connection of server.connections) connection.close()
      await new Promise<void>((resolve) => void server.close(() => resolve()))
    },
  }
}
