/**
 * The texts of mails: built in, or files `<name>.txt` in the folder of MAIL_TEXTS: `Subject: …`, an
 * empty line, and plain text with `{link}`. They contain nothing that users choose, so nobody can
 * send text of their own.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { utf8Of } from '@spillway/common/secrets'

const ignore = 'If this was not you, there is nothing to do.'

/** Every text by its name. A text that contains `{link}` here must contain it in a file too. */
const builtIn = {
  confirm: `Subject: Confirm your e-mail address\n\nOpen this link to confirm your e-mail address:\n\n{link}\n\n${ignore}\n`,
  taken: `Subject: You have an account already\n\nSomebody, probably you, asked for an account with this e-mail address. There is one already: log in, or ask for a new password if you forgot yours.\n\n${ignore}\n`,
  reset: `Subject: Choose a new password\n\nOpen this link to choose a new password. It is good once, and for a short time:\n\n{link}\n\n${ignore}\n`,
  change: `Subject: Confirm your new e-mail address\n\nOpen this link to use this e-mail address for your account from now on:\n\n{link}\n\n${ignore}\n`,
  changed:
    'Subject: Your e-mail address was changed\n\nYour account has another e-mail address now, and this one is not used any more. If this was not you, tell us at once.\n',
  'was-reset':
    'Subject: Your password was changed\n\nYour account has a new password, and was logged out everywhere. If this was not you, ask for a new password at once.\n',
  'password-changed':
    'Subject: Your password was changed\n\nYour account has a new password, and was logged out on all other devices. If this was not you, ask for a new password at once.\n',
  deleted:
    'Subject: Your account was deleted\n\nYour account and its data were deleted. A log of what was done to it, without your e-mail address, may be kept for a time. So is a code that was computed from the address, and from which nobody can read it: the account does not come back from an old copy.\n',
}
export type TextName = keyof typeof builtIn

export class MailTexts {
  readonly #texts: ReadonlyMap<string, ReturnType<typeof parse>>

  /** Throws one sentence with the name of the file if a text of the folder cannot be used. */
  constructor(folder: string) {
    if (folder !== '' && !existsSync(folder)) throw new Error(`MAIL_TEXTS: there is no folder ${folder}`)
    this.#texts = new Map(Object.entries(builtIn).map(([name, text]) => [name, readText(folder, name, text)]))
  }

  write(name: TextName, link = ''): { subject: string; text: string } {
    const { subject, text } = this.#texts.get(name) ?? parse(builtIn[name])
    // A function, because `$` has a meaning in a replacement.
    return { subject, text: text.replaceAll('{link}', () => link) }
  }
}

function readText(folder: string, name: string, byDefault: string): { subject: string; text: string } {
  const file = join(folder, `${name}.txt`)
  if (folder === '' || !existsSync(file)) return parse(byDefault)
  const source = utf8Of(readFileSync(file))?.replaceAll('\r\n', '\n')
  const refuse = (why: string) => new Error(`MAIL_TEXTS: ${file} ${why}`)
  if (source === undefined) throw refuse('is not UTF-8')
  if (!/^Subject: [^\n]*\S[^\n]*\n\n[\s\S]*\S/.test(source))
    throw refuse('must begin with "Subject: …" and an empty line')
  const needsLink = byDefault.includes('{link}')
  if (source.slice(source.indexOf('\n')).includes('{link}') !== needsLink)
    throw refuse(needsLink ? 'needs {link} in its text' : 'has no {link} to hold')
  if (/\{(?!link\})\w*\}/.test(source)) throw refuse('may hold {link} in braces, and nothing else')
  return parse(source)
}

function parse(source: string): { subject: string; text: string } {
  const end = source.indexOf('\n')
  return { subject: source.slice('Subject: '.length, end).trim(), text: source.slice(end + 2) }
}
