/** Events of a flow, for metrics. */

/** How a hold ended: by the result, by a ticket, by the client, or by a failure. */
export const holdOutcomes = ['answered', 'ticket', 'client_gone', 'failed'] as const
export type HoldOutcome = (typeof holdOutcomes)[number]
/** Places of jobs in the queue: see the queue's order.ts. `first` is for known devices. */
export const places = ['first', 'open', 'ticketed'] as const

export interface FlowEvents {
  added: [place: (typeof places)[number]]
  /** The client of a first request disconnected before its job began. */
  removed: []
  held: [hold: { kind: string; outcome: HoldOutcome; ms: number }]
}
