/** Entry point for browsers: logs in, or makes any call that may be answered with a ticket. */
export {
  type AskOptions,
  ask,
  type Credentials,
  type LoginOptions,
  login,
  type RegisterOptions,
  type ResumeOptions,
  register,
  resume,
  type Tokens,
  type User,
} from './browser/ask.js'
export type { Challenge, SolveChallenge } from './browser/challenge.js'
export type { Progress, WaitOptions } from './browser/options.js'
export { progressStates, SpillwayError } from './browser/options.js'
export {
  type LogoutOptions,
  logout,
  restore,
  type SharedTokens,
  type ShareOptions,
  shareTokens,
} from './browser/session.js'
export type { TicketStorage } from './browser/stored-ticket.js'
