/** Mails over SMTP, by nodemailer: plain text, one recipient each. */
import { parseServerUrl } from '@spillway/common/server-url'
import { isLoopback } from '@spillway/common/settings'
import { createTransport } from 'nodemailer'

export interface Message {
  /** An address in the form in which it goes into the envelope, without any further reading. */
  to: string
  subject: string
  text: string
}

/** Why a mail was not sent. Neither text nor cause names an address: BullMQ keeps both in Redis. */
export class MailError extends Error {
  override readonly name = 'MailError'
  readonly isFinal: boolean

  constructor(reason: string, { isFinal }: { isFinal: boolean }) {
    super(reason)
    this.isFinal = isFinal
  }
}

/** How long a server may take to connect, to greet, and between two bytes, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000
const SILENCE_TIMEOUT_MS = 20_000

interface SmtpOptions {
  /** Beyond the loopback, smtp: needs STARTTLS, or `?starttls=optional`. */
  url: string
  /** The name may be empty. */
  from: { name: string; address: string }
}

export class Smtp {
  readonly #from: SmtpOptions['from']
  readonly #transport: ReturnType<typeof transportTo>

  constructor({ url, from }: SmtpOptions) {
    this.#from = from
    this.#transport = transportTo(url)
    // In place of nodemailer's own, which it makes by parsing addresses and changing their domains.
    this.#transport.use('stream', ({ data: { envelope }, message }, done) => {
      const to = envelope?.to
      if (!message || typeof to !== 'string') return done(new MailError('no recipient', { isFinal: true }))
      const otherHeaders = message.buildHeaders.bind(message)
      message.buildHeaders = () => `To: <${to}>\r\n${otherHeaders()}`
      message.getEnvelope = () => ({ from: from.address, to: [to] })
      done()
    })
  }

  /** Sends one message. Throws {@link MailError}. */
  async send({ id, to, subject, text }: Message & { id: string }): Promise<void> {
    const { address } = this.#from
    // The same at each attempt, so that a mailbox can tell a repetition.
    const messageId = `<${id}@${address.slice(address.lastIndexOf('@') + 1)}>`
    const headers = { 'Auto-Submitted': 'auto-generated' }
    try {
      await this.#transport.sendMail({ envelope: { to }, from: this.#from, subject, text, messageId, headers })
    } catch (error) {
      throw mailError(error)
    }
  }

  close(): void {
    this.#transport.close()
  }
}

/** Parses `SMTP_URL`. The error for an invalid URL is one sentence and never quotes it. */
export function parseSmtpUrl(url: string) {
  const { scheme, user, password, hosts, path, parameters } = parseServerUrl(url, {
    setting: 'SMTP_URL',
    schemes: { smtp: 587, smtps: 465 },
    parameters: ['starttls'],
    example: 'smtps://user:password@mail.example.com',
  })
  const [{ host, port }, ...others] = hosts
  if (others.length > 0 || path !== '') throw new Error('SMTP_URL must end with its one host and port')
  return {
    secure: scheme === 'smtps',
    host,
    port,
    user,
    password,
    isTlsOptional: parameters.get('starttls') === 'optional',
  }
}

function transportTo(url: string) {
  const { secure, host, port, user, password, isTlsOptional } = parseSmtpUrl(url)
  return createTransport({
    host,
    port,
    secure,
    requireTLS: !secure && !isLoopback(host) && !isTlsOptional,
    ...(user === '' ? {} : { auth: { user, pass: password } }),
    pool: true,
    maxConnections: 2,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

/**
 * A failure is final when it depends on the mail: its address is invalid (`API`), or the server
 * refuses it permanently (RFC 5321, 4.2.1). All else, a refused login or sender included, is tried
 * again.
 */
function mailError(error: unknown): MailError {
  const { code = 'unknown', command = '', responseCode = 500 } = answerOf(error)
  const isOfMail = (code === 'EENVELOPE' && ['API', 'RCPT TO'].includes(command)) || code === 'EMESSAGE'
  return new MailError(`the mail server: ${code} ${command} ${responseCode}`, {
    isFinal: isOfMail && responseCode >= 500,
  })
}

function answerOf(error: unknown): MailServerAnswer {
  return typeof error === 'object' && error !== null ? error : {}
}

/** What nodemailer adds to its errors. */
interface MailServerAnswer {
  code?: string
  command?: string
  responseCode?: number
}
