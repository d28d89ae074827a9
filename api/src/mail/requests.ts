/**
 * The request that is sealed into the job of a mail, and the message that is made from it. Accounts
 * are looked up when the message is made. So neither the response time nor Redis reveals whether an
 * account exists.
 */

import { objectOf } from '@spillway/queue/wire/object-schema'
import { checkFor } from '@spillway/queue/wire/schema'
import type { FromSchema } from 'json-schema-to-ts'
import type { MailDeps } from './mail.js'
import type { Message } from './smtp.js'
import type { MailTexts, TextName } from './texts.js'
import { type IssueToken, issueToken } from './tokens.js'

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

/**
 * The message of a request, which may be made several times; undefined if it has no recipient.
 *
 * @param times the age of the request, and how long a token is valid from now on
 */
export async function messageOf(
  { config, database }: MailDeps,
  texts: MailTexts,
  request: unknown,
  times: { ageMs: number; lifeMs: number },
): Promise<Message | undefined> {
  const message = (to: string, name: TextName, link?: string) => ({ to, ...texts.write(name, link) })
  const withLink = async (issued: IssueToken) => {
    const to = await issueToken(database, issued)
    const link = issued.purpose === 'reset' ? config.mailResetUrl : config.mailConfirmUrl
    return to === undefined ? undefined : message(to, issued.purpose, link.replaceAll('{token}', issued.token))
  }
  if (!isMailRequest(request)) return undefined
  if (request.kind === 'notice') return message(request.email, request.notice)
  const issued = { token: request.token, ...times }
  switch (request.kind) {
    case 'welcome':
      if (!request.isNew) return message(request.email, 'taken')
      return await withLink({ ...issued, purpose: 'confirm', account: { email: request.email } })
    case 'confirm':
      return await withLink({ ...issued, purpose: 'confirm', account: { id: request.userId } })
    case 'reset':
      return await withLink({ ...issued, purpose: 'reset', account: { email: request.email } })
    case 'change': {
      const { newEmail, userId: id } = request
      const owner = await database.user.findUnique({ where: { email: newEmail }, select: { id: true } })
      // The answer does not tell whether the address is free. Only its owner learns that.
      if (owner !== null && owner.id !== id) return message(newEmail, 'taken')
      return await withLink({ ...issued, purpose: 'change', account: { id }, newEmail })
    }
  }
}
