// The texts of mails.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { MailTexts } from '../../src/mail/texts.ts'

test('a link is in its mail as it is, whatever characters it has', () => {
  const link = 'https://app.example.test/?a=$&b=$$&c=$`#token'
  const { text } = new MailTexts('').write('confirm', link)
  assert.ok(text.includes(`\n${link}\n`), text)
})
