// A real mail server on the loopback interface, which tests may make slow, strict, or dead.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { freePort } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { SMTPServer } from 'smtp-server'
import { afterAll } from 'vitest'

export interface ReceivedMail {
  /** The recipient of the envelope. */
  to: string
  /** The recipient as readers are shown it. */
  toHeader: string
  subject: string
  id: string
  text: string
  /** Of its link; empty without one. */
  token: string
}

export interface MailServer {
  /** Settings of a gateway that sends here. */
  env: NodeJS.ProcessEnv
  received: ReceivedMail[]
  /** Mails to one address, in the order in which they came. */
  to(address: string): ReceivedMail[]
  /** The n-th mail to an address [the first] that matches, once it is there; mails overtake. */
  next(address: string, about: RegExp, n?: number): Promise<ReceivedMail>
  /** Answers nobody any more, then does so again. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Names by which it was greeted. */
  greetings: Set<string>
  /** Addresses that it refuses, with the code of its answer. */
  refused: Map<string, number>
  /** While set, a mail is received but not acknowledged until it resolves. */
  hold: Promise<void> | undefined
  /** Mails that wait for `hold`. */
  held(): number
}

/**
 * It stops with the file: opened before a system, it outlives the gateways that send to it.
 * @param host the interface on which it listens, and by which it is reached
 */
export async function startMailServer(host = '127.0.0.1'): Promise<MailServer> {
  const port = await freePort()
  const received: ReceivedMail[] = []
  const refused = new Map<string, number>()
  const greetings = new Set<string>()
  let heldNow = 0
  let server: SMTPServer | undefined
  const open = () =>
    new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS', 'AUTH'],
      disableReverseLookup: true,
      logger: false,
      // Else it refuses addresses that RFC 5321 allows, such as "a..b"@example.test.
      lenientAddressParsing: true,
      onRcptTo({ address }, session, done) {
        greetings.add(session.hostNameAppearsAs)
        const responseCode = refused.get(address)
        done(responseCode === undefined ? null : Object.assign(new Error(`no such user ${address}`), { responseCode }))
      },
      onData(stream, session, done) {
        const chunks: Buffer[] = []
        stream.on('data', (chunk: Buffer) => chunks.push(chunk))
        stream.on('end', async () => {
          if (mailServer.hold !== undefined) {
            heldNow += 1
            await mailServer.hold
            heldNow -= 1
          }
          received.push(parse(Buffer.concat(chunks).toString('utf8'), session.envelope.rcptTo[0]?.address ?? ''))
          done()
        })
      },
    }).on('error', () => undefined)

  const mailServer: MailServer = {
    env: {
      SMTP_URL: `smtp://${host}:${port}`,
      MAIL_FROM: 'Shop <no-reply@shop.example.test>',
      MAIL_CONFIRM_URL: 'https://app.example.test/confirm#{token}',
      MAIL_RESET_URL: 'https://app.example.test/reset#{token}',
    },
    greetings,
    received,
    refused,
    hold: undefined,
    held: () => heldNow,
    to: (address) => received.filter((mail) => mail.to === address),
    next(address, about, n = 0) {
      const fitting = () => mailServer.to(address).filter(({ subject, text }) => about.test(`${subject}\n${text}`))
      return until(() => fitting()[n], { what: `mail ${n + 1} to ${address} that fits ${about}` })
    },
    async start() {
      server = open()
      server.listen(port, host)
      await once(server.server, 'listening')
    },
    async stop() {
      const stopped = server
      server = undefined
      if (stopped === undefined) return
      for (const connection of stopped.connections) connection.close()
      await new Promise<void>((resolve) => void stopped.close(() => resolve()))
    },
  }
  await mailServer.start()
  afterAll(() => mailServer.stop())
  return mailServer
}

/** One part of plain text, as it is or quoted-printable. */
function parse(source: string, to: string): ReceivedMail {
  const end = source.indexOf('\r\n\r\n')
  const head = source.slice(0, end)
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim() ?? ''
  const body = source.slice(end + 4)
  const encoding = header('content-transfer-encoding')
  assert.ok(['7bit', 'quoted-printable'].includes(encoding), encoding)
  const text = encoding === '7bit' ? body : body.replace(/=\r\n/g, '').replace(/=([0-9A-F]{2})/g, unescaped)
  return {
    to,
    toHeader: header('to'),
    subject: header('subject'),
    id: header('message-id'),
    text,
    token: /#([\w-]{43})\s/.exec(text)?.[1] ?? '',
  }
}

const unescaped = (_: string, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))
