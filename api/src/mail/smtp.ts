/** Mails over SMTP, by nodemailer: plain text, one recipient each. */
import { domainToASCII } from 'node:url'
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
  /** Of nodemailer. */
  readonly code: string
  /** The code of the mail server's answer (RFC 5321, 4.2); `none` without one. */
  readonly answer: string

  constructor(reason: string, { isFinal, code = 'none', answer = 'none' }: Partial<MailError> & { isFinal: boolean }) {
    super(reason)
    this.isFinal = isFinal
    this.code = code
    this.answer = answer
  }
}

/** How long a server may take to connect, to greet, and between two bytes, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000
const SILENCE_TIMEOUT_MS = 20_000

interface SmtpOptions {
  /** Beyond the loopback, smtp: needs STARTTLS, or `?starttls=optional`. */
  url: string
  /** Reads `url` again for each mail, for a rotated user or password [it never changes]. */
  currentUrl?: () => string
  /** The name may be empty. */
  from: { name: string; address: string }
}

export class Smtp {
  readonly #from: SmtpOptions['from']
  readonly #currentUrl: () => string
  #url: string
  #transport: ReturnType<typeof transportTo>
  /** What `#transport` sends now. */
  #sending = new Set<Promise<unknown>>()

  constructor({ url, currentUrl = () => url, from }: SmtpOptions) {
    this.#from = from
    this.#currentUrl = currentUrl
    this.#url = url
    this.#transport = this.#open()
  }

  #open(): ReturnType<typeof transportTo> {
    const from = this.#from
    const transport = transportTo(this.#url, domainOf(from.address))
    // In place of nodemailer's own, which it makes by parsing addresses and changing their domains.
    transport.use('stream', ({ data: { envelope }, message }, done) => {
      const to = envelope?.to
      if (!message || typeof to !== 'string') return done(new MailError('no recipient', { isFinal: true }))
      const otherHeaders = message.buildHeaders.bind(message)
      message.buildHeaders = () => `To: <${to}>\r\n${otherHeaders()}`
      message.getEnvelope = () => ({ from: from.address, to: [to] })
      done()
    })
    return transport
  }

  /** Connections by an earlier URL are closed after the mails in hand. */
  #renew(): void {
    const url = this.#currentUrl()
    if (url === this.#url) return
    const earlier = this.#transport
    void Promise.allSettled(this.#sending).then(() => earlier.close())
    this.#sending = new Set()
    this.#url = url
    this.#transport = this.#open()
  }

  /** Sends one message. Throws {@link MailError}. */
  async send({ id, to, subject, text }: Message & { id: string }): Promise<void> {
    const { address } = this.#from
    // The same at each attempt, so that a mailbox can tell a repetition.
    const messageId = `<${id}@${domainOf(address)}>`
    const headers = { 'Auto-Submitted': 'auto-generated' }
    this.#renew()
    const message = { envelope: { to }, from: this.#from, subject, text, messageId, headers }
    const sent = this.#transport.sendMail(message)
    const sending = this.#sending.add(sent)
    try {
      await sent
    } catch (error) {
      throw mailError(error)
    } finally {
      sending.delete(sent)
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
    parameters: ['starttls', 'name'],
    example: 'smtps://user:password@mail.example.com',
  })
  const [{ host, port }, ...others] = hosts
  if (others.length > 0 || path !== '') throw new Error('SMTP_URL must end with its one host and port')
  const { starttls, name } = Object.fromEntries(parameters)
  if (starttls !== undefined && starttls !== 'optional') throw new Error('SMTP_URL takes starttls=optional alone')
  if (name !== undefined && !/^([a-z\d-]+(\.[a-z\d-]+)*|\[[\da-f:.]+\])$/i.test(name))
    throw new Error('SMTP_URL must have a host name as its name: mail.example.com')
  return {
    secure: scheme === 'smtps',
    host,
    port,
    user,
    password,
    isTlsOptional: starttls === 'optional',
    /** By which the mail server is greeted. */
    name,
  }
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}

/** @param domain of the sender: mail servers refuse a greeting by this machine's own name */
function transportTo(url: string, domain: string) {
  const { secure, host, port, user, password, isTlsOptional, name = domainToASCII(domain) } = parseSmtpUrl(url)
  return createTransport({
    host,
    port,
    secure,
    name,
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
  const { code = 'unknown', command = '', responseCode, response = '' } = answerOf(error)
  const isOfMail = (code === 'EENVELOPE' && ['API', 'RCPT TO'].includes(command)) || code === 'EMESSAGE'
  // The rest of the answer may quote an address.
  const [, status = ''] = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response) ?? []
  const parts = [code, command, responseCode, status].filter((part) => part !== undefined && part !== '')
  return new MailError(`the mail server: ${parts.join(' ')}`, {
    ...{ code, answer: responseCode === undefined ? 'none' : String(responseCode) },
    isFinal: isOfMail && (responseCode ?? 500) >= 500,
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
  response?: string
}
