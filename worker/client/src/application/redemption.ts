/**
 * Follows tickets of a queue. A ticket is a sealed request, so the request is started again if no
 * job of it is left: with the next attempt's id if a job was skipped or has failed, and with its
 * own id if Redis does not have the job. Ids follow from the ticket, so that two redemptions start
 * one job.
 */
import type { PasswordClient } from '@spillway/queue/client'
import type { Estimates } from '@spillway/queue/estimates'
import { presentMs } from '@spillway/queue/order'
import { jobOfTicket } from '@spillway/queue/tickets'
import type { Followed, FollowOptions } from './backend.js'
import type { ApplicationTicket } from './tickets.js'

interface QueueClient extends Pick<PasswordClient, 'admitTo' | 'submit' | 'resume' | 'present' | 'left'> {
  estimates: Pick<Estimates, 'numbered' | 'line' | 'etaMs'>
}

/** Waits for the result of a ticket's job. */
export async function followTicket(
  client: QueueClient,
  ticket: ApplicationTicket,
  options: FollowOptions,
): Promise<Followed> {
  const { holdMs, signal } = options
  if (ticket.number !== undefined) client.estimates.numbered(ticket.number)
  const { expected, attempt, number } = await findOrStart(client, ticket, options)
  const result = await expected.result(holdMs, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error
    void client.left(expected.job)
    return undefined
  })
  const { serving } = client.estimates.line()
  const position = Math.max(0, (number ?? serving) - serving)
  return { result, attempt, number, position, etaMs: client.estimates.etaMs(number) }
}

async function findOrStart(client: QueueClient, ticket: ApplicationTicket, { holdMs, place }: FollowOptions) {
  const forMs = presentMs(holdMs, true)
  for (let attempt = Math.max(1, ticket.attempt); ; attempt += 1) {
    const job = { ...jobOfTicket(ticket, attempt), name: 'verify' as const }
    // A new ticket has no job that could be found.
    const found = ticket.attempt === 0 ? undefined : await client.resume(job)
    if (found?.state === 'result' || found?.state === 'waiting') {
      if (found.state === 'waiting') void client.present(job, forMs)
      // A job that another redemption has started may have another number.
      return { expected: found, attempt, number: attempt === ticket.attempt ? ticket.number : undefined }
    }
    found?.end()
    if (found?.state === 'ended') continue
    const { request } = ticket.contents
    const submitted = await client.submit({
      job,
      request,
      admitted: client.admitTo(place()),
      presentMs: forMs,
      heldMs: holdMs,
    })
    return { expected: submitted, attempt, number: submitted.number }
  }
}
