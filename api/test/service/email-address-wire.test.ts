// An address is one text: what is answered, stored, counted, and on the wire of a mail server.
import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { listening } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { assertProblem, expect, newCredentials } from '../client.ts'
import { addresses } from '../email-addresses.ts'
import { startMailServer } from '../mail-server.ts'
import { openSystem } from '../system.ts'

const MAILS_AN_HOUR = 5

const mails = await startMailServer()
const wire = await tapped(mails.env.SMTP_URL ?? '')
afterAll(() => wire.close())
const system = await openSystem()
await system.worker()
const { api } = await system.gateway({
  ...mails.env,
  SMTP_URL: wire.url,
  LIMIT_MAIL_PER_RECIPIENT: String(MAILS_AN_HOUR),
})
const { password } = newCredentials()

test('three hundred texts: each is refused, or is one account, one mail budget and one recipient', async () => {
  for (const [text, address] of addresses) {
    const answer = await api.register({ email: text, password })
    if (address === undefined) assertProblem(answer, 422, 'invalid_request')
    else assert.equal(expect(201, answer).email, address, JSON.stringify(text))
  }

  const spellings = new Map<string, number>()
  for (const [, address] of addresses) {
    if (address !== undefined) spellings.set(address, (spellings.get(address) ?? 0) + 1)
  }
  const stored = await system.database.user.findMany({ select: { email: true } })
  assert.deepEqual(stored.map(({ email }) => email).sort(), [...spellings.keys()].sort())

  const due = [...spellings].flatMap(([address, count]) =>
    Array<string>(Math.min(count, MAILS_AN_HOUR)).fill(`RCPT TO:<${address}>`),
  )
  await until(() => wire.recipients().length >= due.length && mails.received.length >= due.length)
  assert.deepEqual(wire.recipients().sort(), due.sort())
  const headers = new Set(mails.received.map(({ toHeader }) => toHeader))
  assert.deepEqual([...headers].sort(), [...spellings.keys()].map((address) => `<${address}>`).sort())
})

/** A way to a mail server on which every byte that a client sends is kept. */
async function tapped(smtpUrl: string) {
  const { hostname, port } = new URL(smtpUrl)
  const sent: Buffer[][] = []
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    const bytes: Buffer[] = []
    sent.push(bytes)
    client.on('data', (chunk) => bytes.push(chunk))
    client.pipe(upstream).pipe(client)
    client.on('error', () => upstream.destroy())
    upstream.on('error', () => client.destroy())
  })
  const ownPort = await listening(server)
  return {
    url: `smtp://127.0.0.1:${ownPort}`,
    recipients: () =>
      sent.flatMap(
        (bytes) =>
          Buffer.concat(bytes)
            .toString('utf8')
            .match(/^RCPT TO:.*$/gm) ?? [],
      ),
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}
