/** The problems of the API (RFC 9457): each code has one status and one public `detail`. */

export const problems = {
  malformed_request: { status: 400, detail: 'The request cannot be read' },
  invalid_ticket: { status: 400, detail: 'The ticket was not issued by this service' },
  invalid_mail_token: { status: 400, detail: 'The link is not valid, or expired, or was used' },
  invalid_credentials: { status: 401, detail: 'The e-mail address or the password is wrong' },
  invalid_token: { status: 401, detail: 'The access token is missing, invalid or expired' },
  invalid_refresh_token: { status: 401, detail: 'The refresh token is invalid, expired or used' },
  invalid_service_key: { status: 401, detail: 'The key of the service is missing or not known' },
  operators_only: { status: 401, detail: 'An operator must log in' },
  other_site: { status: 403, detail: 'Requests from other sites, or under another host name, are refused' },
  registration_closed: { status: 403, detail: 'Registration is closed' },
  mail_off: { status: 403, detail: 'This service sends no mail' },
  network_blocked: { status: 403, detail: 'Requests from this network are refused' },
  forbidden: { status: 403, detail: 'This resource is not public' },
  role_required: { status: 403, detail: 'The role of this operator does not allow this' },
  account_not_found: { status: 404, detail: 'There is no such account' },
  job_not_found: { status: 404, detail: 'No job of this request is in the queue' },
  session_not_found: { status: 404, detail: 'The account has no such session' },
  not_found: { status: 404, detail: 'No resource has this path' },
  method_not_allowed: { status: 405, detail: 'This path does not accept this method' },
  request_timeout: { status: 408, detail: 'The request did not arrive in time' },
  email_taken: { status: 409, detail: 'An account with this e-mail address exists already' },
  ticket_used: { status: 409, detail: 'The ticket has been redeemed' },
  ticket_expired: { status: 410, detail: 'The ticket has expired' },
  ticket_lost: { status: 410, detail: 'The answer was lost and nothing was changed; send the first request again' },
  precondition_failed: { status: 412, detail: "The resource does not meet the request's condition" },
  body_too_large: { status: 413, detail: 'The body is too large' },
  unsupported_media_type: { status: 415, detail: 'The body must be application/json in UTF-8, and not compressed' },
  range_not_satisfiable: { status: 416, detail: 'The requested range is outside the resource' },
  invalid_request: { status: 422, detail: 'The request is not valid' },
  unsupported_hash: { status: 422, detail: 'No worker verifies a stored hash like this one' },
  too_many_requests: { status: 429, detail: 'A rate limit is exceeded' },
  challenge_required: {
    status: 429,
    detail: 'Too many logins to this account failed: solve the challenge to try again',
  },
  headers_too_large: { status: 431, detail: 'The headers are too large' },
  internal_error: { status: 500, detail: 'The service could not answer because of an internal error' },
  busy: { status: 503, detail: 'Too many requests are waiting; try again later' },
  operator_unverified: {
    status: 503,
    detail:
      'No worker verified this password: while none does, OPS_USER logs in with OPS_PASSWORD, which needs no worker',
  },
  unavailable: { status: 503, detail: 'A part of the service is not reachable; try again later' },
} as const

export type ErrorCode = keyof typeof problems
export const errorCodes = Object.keys(problems)
