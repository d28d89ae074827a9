/** Where a device token is carried: the header Spillway-Device, or a cookie that scripts cannot read. */
import type { IncomingHttpHeaders } from 'node:http'

/** The prefix has browsers accept it over TLS alone, and from this host alone (RFC 6265bis, 4.1.3.2). */
export const DEVICE_COOKIE = '__Host-spillway-device'
const IN_COOKIES = new RegExp(`(?:^|; *)${DEVICE_COOKIE}=([\\w.-]+)`)

/** The token of a request, from its header or else its cookie; empty without one. */
export function deviceTokenOf(headers: IncomingHttpHeaders): string {
  const sent = headers['spillway-device']
  if (typeof sent === 'string') return sent
  return IN_COOKIES.exec(headers.cookie ?? '')?.[1] ?? ''
}
