/** What became of a mail, for metrics. Apart from the sender, which loads BullMQ and nodemailer. */

/** `nobody`: there was nobody to send it to; `failed`: not sent, and not tried again. */
export const mailOutcomes = ['sent', 'nobody', 'expired', 'retried', 'failed', 'forged'] as const
export type MailOutcome = (typeof mailOutcomes)[number]
