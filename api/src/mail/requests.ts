/**
 * The request that is sealed into the job of a mail, and the message that is made from it. Accounts
 * are looked up when the message is made. So neither the response time nor Redis reveals whether an
 * account exists.
 */

import type { Database } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { checkFor } from '@spillway/queue/wire/schema'
import type { FromSchema } from 'json-schema-to-ts'
import type { Message } from './smtp.js'
import type { MailTexts, TextName } from './texts.js'
import { type IssueToken, issueToken, type TokenPurpose } from './tokens.js'

const text = { type: 'string' } as const
const notices = ['changed', 'was-reset', 'password-changed', 'deleted'] as const
/** A change of an account that a mail tells its owner about. */
export type Notice = (typeof notices)[number]
const MailRequest = {
  type: 'object',
  discriminator: { propertyName: 'kind' },
  required: ['kind'],
  oneOf: [
    // After a registration: to the new account, or to the owner of the address.
    objectOf({ kind: { const: 'welcome' }, email: text, token: text, isNew: { type: 'boolean' } }),
    objectOf({ kind: { const: 'confirm' }, userId: text, token: text }),
    objectOf({ kind: { const: 'reset' }, email: text, token: text }),
    objectOf({ kind: { const: 'change' }, userId: text, newEmail: text, token: text }),
    objectOf({ kind: { const: 'notice' }, email: text, notice: { type: 'string', enum: notices } }),
  ],
} as const
export type MailRequest = FromSchema<typeof MailRequest>
const isMailRequest = checkFor<MailRequest>(MailRequest)

type Times = Pick<IssueToken, 'ageMs' | 'lifeMs'>

interface WriterOptions {
  database: Database
  texts: MailTexts
  /** URLs with `{token}` in them. */
  links: { confirm: string; reset: string }
}

export class MailWriter {
  readonly #options: WriterOptions

  constructor(options: WriterOptions) {
    this.#options = options
  }

  /** The message of a request, which may be made several times; undefined if it has no recipient. */
  async messageOf(request: unknown, times: Times): Promise<Message | undefined> {
    if (!isMailRequest(request)) return undefined
    const { database, links } = this.#options
    switch (request.kind) {
      case 'notice':
        return this.#message(request.email, request.notice)
      case 'welcome':
        if (!request.isNew) return this.#message(request.email, 'taken')
        return await this.#withToken('confirm', { email: request.email }, request.token, links.confirm, times)
      case 'confirm':
        return await this.#withToken('confirm', { id: request.userId }, request.token, links.confirm, times)
      case 'reset':
        return await this.#withToken('reset', { email: request.email }, request.token, links.reset, times)
      case 'change': {
        const { newEmail, userId, token } = request
        const owner = await database.user.findUnique({ where: { email: newEmail }, select: { id: true } })
        // The answer does not tell whether the address is free. Only its owner learns that.
        if (owner !== null && owner.id !== userId) return this.#message(newEmail, 'taken')
        return await this.#withToken('change', { id: userId }, token, links.confirm, times, newEmail)
      }
    }
  }

  async #withToken(
    purpose: TokenPurpose,
    account: { id: string } | { email: string },
    token: string,
    link: string,
    times: Times,
    newEmail?: string,
  ): Promise<Message | undefined> {
    const issued = { token, purpose, account, ...times, ...(newEmail === undefined ? {} : { newEmail }) }
    const to = await issueToken(this.#options.database, issued)
    return to === undefined ? undefined : this.#message(to, purpose, link.replaceAll('{token}', token))
  }

  #message(to: string, name: TextName, link?: string): Message {
    return { to, ...this.#options.texts.write(name, link) }
  }
}
