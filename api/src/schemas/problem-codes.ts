/** Every code of a problem, with its one status and its one public sentence (RFC 9457). */

export const problems = {
  malformed_request: { status: 400, title: 'The request cannot be read' },
  invalid_ticket: { status: 400, title: 'This is not a ticket of this service' },
  invalid_credentials: { status: 401, title: 'The e-mail address or the password is wrong' },
  invalid_token: { status: 401, title: 'The access token is missing, invalid or expired' },
  invalid_refresh_token: { status: 401, title: 'The refresh token is invalid, expired or used' },
  operators_only: { status: 401, title: 'This is for operators: a user name and a password are needed' },
  other_site: { status: 403, title: 'This is not for pages of other sites, nor under another name' },
  forbidden: { status: 403, title: 'This is not given out' },
  not_found: { status: 404, title: 'There is nothing here' },
  method_not_allowed: { status: 405, title: 'There is something here, but not for this method' },
  request_timeout: { status: 408, title: 'The request did not arrive in time' },
  email_taken: { status: 409, title: 'This e-mail address has an account already' },
  ticket_used: { status: 409, title: 'The ticket has been redeemed' },
  ticket_expired: { status: 410, title: 'The ticket can no longer be redeemed' },
  precondition_failed: { status: 412, title: 'What is there does not meet the condition of the request' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The body must be application/json in UTF-8' },
  range_not_satisfiable: { status: 416, title: 'What is there does not reach into this range' },
  invalid_request: { status: 422, title: 'The request is not valid' },
  too_many_requests: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'The headers are too large' },
  internal_error: { status: 500, title: 'Something went wrong here' },
  busy: { status: 503, title: 'Too many requests are waiting; try again later' },
  unavailable: { status: 503, title: 'A part of the service is not reachable; try again later' },
} as const

export type ErrorCode = keyof typeof problems
export const errorCodes = Object.keys(problems)
