/** Rules of the configuration that its schema cannot express. They check the raw texts. */
import { isLoopback, listOf } from '@spillway/common/settings'
import { connectionTo } from '@spillway/prisma'
import { refuseGuessableKeys } from '@spillway/queue/client'
import { parseRedisUrl } from '@spillway/queue/redis/url'
import { parseSmtpUrl } from './mail/smtp.js'
import { roles } from './ops/named.js'
import { isCommon } from './passwords/new-password.js'
import { isAddressRange, lengthOf } from './schemas/credentials.js'
import { parseSender } from './schemas/email-address.js'
import { optionalClaimNames } from './sessions/access-token.js'

/** The least life of a ticket after the longest hold, in milliseconds: time to redeem it. */
const TIME_TO_REDEEM_MS = 3_000

/** The least length of OPS_PASSWORD beyond the loopback: it is rarely changed. */
const OPERATOR_PASSWORD_LENGTH = 12

type Defaulted =
  | ('LOGIN_WAIT_MS' | 'TICKET_TTL_MS' | 'SESSION_IDLE_S' | 'ACCESS_TOKEN_TTL_S')
  | ('TRUST_PROXY' | 'CORS_ORIGINS' | 'SESSION_COOKIE' | 'ISSUER' | 'TOKEN_CLAIMS')
  | ('OPS_HOST' | 'OPS_PASSWORD' | 'OPS_OPERATORS_FILE' | 'OPS_PROXIES' | 'OPS_GROUPS')

/** A sentence for each broken rule. It contains no values except names. */
export function contradictionsIn(
  env: NodeJS.ProcessEnv,
  defaults: Record<Defaulted, { readonly default: unknown }>,
): string[] {
  const textOf = (name: Defaulted) => env[name] ?? String(defaults[name].default)
  const problems: string[] = []
  if (Number(textOf('LOGIN_WAIT_MS')) + TIME_TO_REDEEM_MS > Number(textOf('TICKET_TTL_MS')))
    problems.push(
      `LOGIN_WAIT_MS must be ${TIME_TO_REDEEM_MS} ms or more below TICKET_TTL_MS: a ticket that is given after the wait must leave time to redeem it`,
    )
  if (Number(textOf('SESSION_IDLE_S')) < Number(textOf('ACCESS_TOKEN_TTL_S')))
    problems.push('SESSION_IDLE_S must not be below ACCESS_TOKEN_TTL_S: an access token would outlive its session')
  for (const name of ['TRUST_PROXY', 'OPS_PROXIES'] as const)
    if (!listOf(textOf(name)).every((range) => isAddressRange(range)))
      problems.push(`${name} must be a comma-separated list of IP addresses or CIDR ranges`)
  if (!listOf(textOf('OPS_GROUPS')).every((entry) => roles.some((role) => entry.endsWith(`:${role}`))))
    problems.push(`OPS_GROUPS must be a comma-separated list of groups with a role each: sre:${roles.join(', sre:')}`)
  if ((textOf('OPS_PROXIES') === '') !== (textOf('OPS_GROUPS') === ''))
    problems.push('OPS_PROXIES and OPS_GROUPS need each other: without a role an operator may do nothing')
  const origins = listOf(textOf('CORS_ORIGINS'))
  if (!origins.every(isOriginEntry))
    problems.push(
      'CORS_ORIGINS must be a comma-separated list of origins as browsers send them: https://app.example.com, without a slash at the end, or https://*.preview.example.com with * for one label',
    )
  if (textOf('SESSION_COOKIE') === 'true' && origins.some((origin) => origin.includes('*')))
    problems.push(
      'CORS_ORIGINS must name each origin where SESSION_COOKIE is true: whoever gets a host below a * could use the cookies of others',
    )
  if (!isIssuer(textOf('ISSUER')))
    problems.push(
      'ISSUER must be a name, or an https URL (http for the loopback alone) with a path of letters, digits and ._~- at most, and without a slash at the end',
    )
  if (!listOf(textOf('TOKEN_CLAIMS')).every((name) => optionalClaimNames.some((known) => known === name)))
    problems.push(`TOKEN_CLAIMS must be a comma-separated list of ${optionalClaimNames.join(' and ')}`)
  problems.push(...mailProblemsIn(env))
  if (!isLoopback(textOf('OPS_HOST'))) {
    const password = textOf('OPS_PASSWORD')
    const hasOthers = textOf('OPS_OPERATORS_FILE') + textOf('OPS_PROXIES') !== ''
    if (password === '' && !hasOthers)
      problems.push(
        'OPS_HOST is open to others and OPS_PASSWORD is not set: set it, OPS_OPERATORS_FILE or OPS_PROXIES, or listen on 127.0.0.1',
      )
    else if (password !== '' && (lengthOf(password) < OPERATOR_PASSWORD_LENGTH || isCommon(password)))
      problems.push(
        `OPS_HOST is open to others and OPS_PASSWORD can be guessed: it must have ${OPERATOR_PASSWORD_LENGTH} characters and be no common password`,
      )
  }
  const { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl } = env
  if (databaseUrl) problems.push(...problemOf(() => connectionTo(databaseUrl)))
  if (redisUrl) problems.push(...problemOf(() => parseRedisUrl(redisUrl)))
  for (const variable of ['SPILLWAY_SEAL_KEYS', 'SERVICE_KEYS']) {
    const list = env[variable]
    if (list) problems.push(...problemOf(() => refuseGuessableKeys(variable, list)))
  }
  return problems
}

function problemOf(check: () => unknown): string[] {
  try {
    check()
    return []
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
}

/** Values are not shown, because SMTP_URL contains a password. */
function mailProblemsIn(env: NodeJS.ProcessEnv): string[] {
  const problems: string[] = []
  const { SMTP_URL = '', MAIL_FROM = '', LOGIN_NEEDS_CONFIRMATION = '' } = env
  if (SMTP_URL === '') {
    if (LOGIN_NEEDS_CONFIRMATION === 'true')
      problems.push('LOGIN_NEEDS_CONFIRMATION needs SMTP_URL: without mail no address can be confirmed')
    return problems
  }
  problems.push(...problemOf(() => parseSmtpUrl(SMTP_URL)))
  if (parseSender(MAIL_FROM) === undefined)
    problems.push('MAIL_FROM must be an address, or a name and an address: Shop <no-reply@example.com>')
  for (const name of ['MAIL_CONFIRM_URL', 'MAIL_RESET_URL']) {
    const link = env[name] ?? ''
    if (!/^https?:\/\//.test(link) || !link.includes('{token}') || !URL.canParse(link))
      problems.push(`${name} must be the URL of a page with {token} in it: https://app.example.com/confirm#{token}`)
  }
  return problems
}

/** `*` as the first label of a host, followed by two labels or more, or by `localhost`. */
const WILDCARD = /^(https?:\/\/)\*\.((?:[^.]+\.)+[^.]+|localhost(?::\d+)?)$/
/**
 * The origin of an application's own scheme, such as `capacitor://localhost`. URL has no origin
 * for it (WHATWG URL, 4.7), and browsers send it as it is written. A mistyped `https`, or a scheme
 * with rules in URL, is not the scheme of an application.
 */
const OWN_SCHEME = /^(?!h[htps]*:|wss?:|ftp:|file:)[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\*]+$/

/** Whether a text is an origin as browsers send it (RFC 6454, 6.2), or starts with a `*` label. */
function isOriginEntry(text: string): boolean {
  const origin = text.replace(WILDCARD, '$1any.$2')
  if (OWN_SCHEME.test(origin)) return URL.canParse(origin)
  const isOfPages = /^https?:[^*]+$/.test(origin) && URL.canParse(origin)
  return isOfPages && new URL(origin).origin === origin
}

/** Whether a text is a name, or a URL as verifiers compare it: byte by byte. */
function isIssuer(text: string): boolean {
  if (!text.includes(':')) return true
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:\/\/[^/@]+(\/[\w.~-]+)*$/.test(text) || url.href.replace(/\/$/, '') !== text)
    return false
  return url.protocol === 'https:' || isLoopback(url.hostname)
}
