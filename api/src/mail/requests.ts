/**
 * What is sealed into the job of a mail, and the message that is made of it when it is sent. Accounts are looked up then, and not while the
 * request is answered. So neither its time nor Redis reveals whether an account exists.
 */

import type { Database } from '@spillway/prisma'
import { checkFor } from '@spillway/queue/wire/schema'
import type { FromSchema } from 'json-schema-to-ts'
import type { Message } from './smtp.js'
import type { TextName, WriteText } from './texts.js'
import { issueToken } from './tokens.js'

const text = { type: 'string' } as const
const notices = ['changed', 'was-reset', 'password-changed', 'deleted'] as const
/** A change of an account that its owner is told of. */
export type Notice = (typeof notices)[number]
const MailRequest = {
  type: 'object',
  discriminator: { propertyName: 'kind' },
  required: ['kind'],
  oneOf: [
    // After a registration: to the new account, or to the owner of the address.
    {
      properties: { kind: { const: 'welcome' }, email: text, token: text, isNew: { type: 'boolean' } },
      required: ['kind', 'email', 'token', 'isNew'],
      additionalProperties: false,
    },
    {
      properties: { kind: { const: 'confirm' }, userId: text, token: text },
      required: ['kind', 'userId', 'token'],
      additionalProperties: false,
    },
    {
      properties: { kind: { const: 'reset' }, email: text, token: text },
      required: ['kind', 'email', 'token'],
      additionalProperties: false,
    },
    {
      properties: { kind: { const: 'change' }, userId: text, newEmail: text, token: text },
      required: ['kind', 'userId', 'newEmail', 'token'],
      additionalProperties: false,
    },
    {
      properties: {
        kind: { const: 'notice' },
        email: text,
        notice: { type: 'string', enum: notices },
      },
      required: ['kind', 'email', 'notice'],
      additionalProperties: false,
    },
  ],
} as const
export type MailRequest = FromSchema<typeof MailRequest>
const isMailRequest = checkFor<MailRequest>(MailRequest)

export interface Links {
  /** URLs with `{token}` in them. */
  confirmUrl: string
  resetUrl: string
}

/** Returns how to make the message of a request; it may be made several times. Undefined when nobody is to get one. */
export function createMessages(deps: { database: Database; write: WriteText; links: Links }) {
  const { database, write, links } = deps
  const linkTo = (url: string, token: string) => url.replaceAll('{token}', token)
  const message = (to: string | undefined, name: TextName, link?: string): Message | undefined =>
    to === undefined ? undefined : { to, ...write(name, link) }

  return async (request: unknown, { leftMs: lifeMs }: { leftMs: number }): Promise<Message | undefined> => {
    if (!isMailRequest(request)) return undefined
    if (request.kind === 'notice') return message(request.email, request.notice)
    const { token } = request
    const confirmLink = linkTo(links.confirmUrl, token)
    const confirmation = async (account: { id: string } | { email: string }) =>
      message(await issueToken(database, { token, purpose: 'confirm', account, lifeMs }), 'confirm', confirmLink)
    switch (request.kind) {
      case 'welcome': {
        return request.isNew ? await confirmation({ email: request.email }) : message(request.email, 'taken')
      }
      case 'confirm': {
        return await confirmation({ id: request.userId })
      }
      case 'reset': {
        const account = { email: request.email }
        const to = await issueToken(database, { token, purpose: 'reset', account, lifeMs })
        return message(to, 'reset', linkTo(links.resetUrl, token))
      }
      case 'change': {
        const { newEmail } = request
        const account = { id: request.userId }
        const owner = await database.user.findUnique({ where: { email: newEmail }, select: { id: true } })
        // The answer does not say whether the address is free; only its owner learns it.
        if (owner !== null && owner.id !== request.userId) return message(newEmail, 'taken')
        const to = await issueToken(database, { token, purpose: 'change', account, newEmail, lifeMs })
        return message(to, 'change', confirmLink)
      }
    }
  }
}
