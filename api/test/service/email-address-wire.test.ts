// An address is one text also on the wire of a mail server: its envelope and the header that readers see.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { domainToASCII } from 'node:url'
import { test } from 'vitest'
import { Smtp } from '../../src/mail/smtp.ts'
import { addresses } from '../email-addresses.ts'
import { startMailServer } from '../mail-server.ts'

test('every address gets one mail, in the form in which it is stored', async (t) => {
  const mails = await startMailServer()
  const from = { name: 'Shop', address: 'no-reply@shop.example.test' }
  const smtp = new Smtp({ currentUrl: () => mails.env.SMTP_URL ?? '', from })
  t.onTestFinished(() => smtp.close())
  const known = [...new Set(addresses.map(([, address]) => address).filter((address) => address !== undefined))]
  for (const to of known) await smtp.send({ id: randomUUID(), to, subject: 'Hello', text: 'Hello' })
  // The server decodes the domain.
  const envelopeOf = (to: string) => to.replace(/[^@]*$/, (domain) => domainToASCII(domain))
  const sent = mails.received.map(({ to, toHeader }) => [envelopeOf(to), toHeader])
  assert.deepEqual(
    sent,
    known.map((address) => [address, `<${address}>`]),
  )
})
