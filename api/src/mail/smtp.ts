/** Mails over SMTP, by nodemailer: plain text, one recipient each. */
import { domainToASCII } from 'node:url'
import { parseServerUrl } from '@spillway/common/server-url'
import { isLoopback } from '@spillway/common/settings'
import { createTransport } from 'nodemailer'

export interface Message {
  /** The address in the form of the envelope. It is not parsed again. */
  to: string
  subject: string
  text: string
}

/** Why a mail was not sent. Text and cause name no address, because BullMQ keeps both in Redis. */
export class MailError extends Error {
  override readonly name = 'MailError'
  readonly isFinal: boolean
  /** The code of nodemailer. */
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
  /**
   * Reads the URL for each mail, for a rotated user or password. Beyond the loopback, `smtp:` needs
   * STARTTLS, or `?starttls=optional`.
   */
  currentUrl(): string
  /** The name may be empty. */
  from: { name: string; address: string }
}

export class Smtp {
  readonly #from: SmtpOptions['from']
  readonly #currentUrl: () => string
  #url: string
  #transport: ReturnType<typeof transportTo>
  /** Mails that `#transport` is sending. */
  #sending = new Set<Promise<unknown>>()

  constructor({ currentUrl, from }: SmtpOptions) {
    this.#from = from
    this.#currentUrl = currentUrl
    this.#url = currentUrl()
    this.#transport = this.#open()
  }

  #open(): ReturnType<typeof transportTo> {
    const from = this.#from
    const transport = transportTo(this.#url, domainOf(from.address))
    // Replaces nodemailer's own envelope: it parses addresses again and changes their domains.
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

  /** Connections by an earlier URL are closed after their running mails. */
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
    // The same id at each attempt, so that a mailbox can detect a repetition.
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
    parameters: ['starttls'],
    example: 'smtps://user:password@mail.example.com',
  })
  const [{ host, port }, ...others] = hosts
  if (others.length > 0 || path !== '') throw new Error('SMTP_URL must end with its one host and port')
  const { starttls } = Object.fromEntries(parameters)
  if (starttls !== undefined && starttls !== 'optional') throw new Error('SMTP_URL takes only optional as its starttls')
  return { secure: scheme === 'smtps', host, port, user, password, isTlsOptional: starttls === 'optional' }
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}

function transportTo(url: string, domain: string) {
  const { secure, host, port, user, password, isTlsOptional } = parseSmtpUrl(url)
  return createTransport({
    host,
    port,
    secure,
    // Mail servers refuse a greeting with the name of a container.
    name: domainToASCII(domain),
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

/** What a failure to connect means, by the code of the socket or of nodemailer. */
const causes: Record<string, string> = {
  ECONNREFUSED: 'nothing listens at the port of SMTP_URL',
  EDNS: 'the host of SMTP_URL has no address',
  ETIMEDOUT: 'it does not answer, or its port is only for smtps:',
  ERR_SSL_WRONG_VERSION_NUMBER: 'its port does not begin with TLS: SMTP_URL must begin with smtp:',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'its port does not begin with TLS: SMTP_URL must begin with smtp:',
  ETLS: 'it offers no STARTTLS: SMTP_URL must begin with smtps:, or end with ?starttls=optional',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name than the host of SMTP_URL',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is from an unknown authority, which NODE_EXTRA_CA_CERTS can add',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is from an unknown authority, which NODE_EXTRA_CA_CERTS can add',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is from an unknown authority, which NODE_EXTRA_CA_CERTS can add',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is from an unknown authority, which NODE_EXTRA_CA_CERTS can add',
  EAUTH: 'it refuses the user or the password of SMTP_URL',
}

/**
 * A failure is final if it depends on the mail: its address is invalid (`API`), or the server
 * refuses it permanently (RFC 5321, 4.2.1). All other failures are retried, also a refused login or
 * sender.
 */
function mailError(error: unknown): MailError {
  const { code = 'unknown', originalCode = '', command = '', responseCode, response = '' } = answerOf(error)
  const isOfMail = (code === 'EENVELOPE' && ['API', 'RCPT TO'].includes(command)) || code === 'EMESSAGE'
  // The rest of the answer may quote an address.
  const [, status = ''] = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response) ?? []
  const parts = [code, command, responseCode, status].filter((part) => part !== undefined && part !== '')
  const cause = causes[originalCode] ?? causes[code]
  return new MailError(`the mail server: ${cause === undefined ? '' : `${cause}; `}${parts.join(' ')}`, {
    code,
    answer: responseCode === undefined ? 'none' : String(responseCode),
    isFinal: isOfMail && (responseCode ?? 500) >= 500,
  })
}

function answerOf(error: unknown): MailServerAnswer {
  return typeof error === 'object' && error !== null ? error : {}
}

/** What nodemailer adds to its errors. */
interface MailServerAnswer {
  code?: string
  /** The code of the socket's error, where `code` is nodemailer's. */
  originalCode?: string
  command?: string
  responseCode?: number
  response?: string
}
