/** The queue of mails: its name, what is in a job, and how long a job is kept. Apart from passwords, so that no login waits for a mail. */
import { checkFor } from '@spillway/client/protocol/schema'
import type { FromSchema } from 'json-schema-to-ts'

export const MAIL_QUEUE = 'mail'
/** One name for all mails: the kind of a mail would tell a reader of Redis whether an address has an account. */
export const MAIL_JOB = 'mail'

const MailData = {
  type: 'object',
  properties: {
    sealed: { type: 'string', maxLength: 32_768 },
    /** Epoch milliseconds by Redis's clock. Bound by the seal. */
    deadline: { type: 'integer' },
  },
  required: ['sealed', 'deadline'],
  additionalProperties: false,
} as const
export type MailData = FromSchema<typeof MailData>
export const isMailData: (value: unknown) => value is MailData = checkFor<MailData>(MailData)

/** The seal of a mail. */
export const mailSeal = (id: string, deadline: number) => ({ purpose: 'mail' as const, id, bind: [deadline] })

/**
 * A server may be away for an hour: attempts after 1, 2, 4 s and so on, then every five minutes. A mail that is past its deadline is
 * dropped before.
 */
export const MAIL_ATTEMPTS = 20
const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 300_000

export function retryDelayMs(attemptsMade: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (attemptsMade - 1), LONGEST_RETRY_MS)
}

/** Failed mails that operators find on the board, for a week at the longest, in seconds. */
export const KEEP_FAILED = { count: 1_000, age: 7 * 24 * 3_600 }
