/** Entry point for browsers: logs in, or makes any call that may be answered with a ticket. */
export { type AskOptions, ask, type ResumeOptions, resume } from './browser/ask.js'
export type { Challenge, SolveChallenge } from './browser/challenge.js'
export {
  type Credentials,
  type LoginOptions,
  login,
  type RegisterOptions,
  register,
  type Tokens,
  type User,
} from './browser/login.js'
export type { Progress, WaitOptions } from './browser/options.js'
export { progressStates, SpillwayError } from './browser/options.js'
export { type LogoutOptions, logout, restore } from './browser/session-cookie.js'
export { type SharedTokens, type ShareOptions, shareTokens } from './browser/share-tokens.js'
export type { TicketStorage } from './browser/stored-ticket.js'
