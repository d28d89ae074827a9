// The requests of a storm, as flags or a file describe them.
import { readFile } from 'node:fs/promises'
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { UserError } from '@spillway/infra/processes/command-line'

export interface HttpRequest {
  method: string
  /** With its query. */
  path: string
  headers: Record<string, string>
  body: string | undefined
}

/** What stands for the number of the user, from 1, in path, headers and body of a login. */
const USER = '{n}'
export const BODY_MAX_BYTES = 64 * 1024

export function forUser({ method, path, headers, body }: HttpRequest, user: number): HttpRequest {
  const fill = (text: string) => text.replaceAll(USER, String(user))
  return {
    method,
    path: fill(path),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fill(value)])),
    body: body === undefined ? undefined : fill(body),
  }
}

/** `POST /login`: without the query, which may hold a password. */
export function nameOf({ method, path }: HttpRequest): string {
  return `${method} ${path.replace(/\?.*/, '')}`
}

/** `POST /login`; or `/login`, with the method that is given. */
export function parseRequestLine(option: string, line: string, method: string): HttpRequest {
  const parts = /^(?:([A-Z]+) +)?(\/[\x21-\x7e]*)$/.exec(line)
  const [, given = method, path] = parts ?? []
  if (path === undefined) throw new UserError(`${option} takes a method and a path, such as "${method} /path".`)
  return { method: given, path, headers: {}, body: undefined }
}

/** `name: value`, each. */
export function parseHeaders(option: string, lines: readonly string[]): Record<string, string> {
  const headers = lines.map((line): [string, string] => {
    const [, name = '', value = ''] = /^([^:\s]+):\s*(.*)$/.exec(line) ?? []
    return [name.toLowerCase(), value]
  })
  if (headers.every(isHeader)) return Object.fromEntries(headers)
  throw new UserError(`${option} takes a name and a value, such as "x-api-key: abc".`)
}

function isHeader([name, value]: readonly [string, string]): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}

/**
 * Adds the body, and a content type unless one is given: JSON by its first character, or a form.
 */
export function withBody(request: HttpRequest, body: string | undefined): HttpRequest {
  if (body === undefined) return request
  if (Buffer.byteLength(body) > BODY_MAX_BYTES) throw new UserError(`A body has at most ${BODY_MAX_BYTES} bytes.`)
  const type = /^\s*[{[]/.test(body) ? 'application/json' : 'application/x-www-form-urlencoded'
  return { ...request, body, headers: { 'content-type': type, ...request.headers } }
}

// A file with the request of a login keeps a password off the command line.

const fields = ['method', 'path', 'headers', 'body']

/**
 * Reads JSON: `{"method": "POST", "path": "/login", "headers": {…}, "body": {…} or "…"}`.
 *
 * @throws {@link UserError}, which quotes nothing of the file but names of fields
 */
export async function readRequest(file: string): Promise<HttpRequest> {
  const text = await readFile(file, 'utf8').catch((cause) => {
    throw new UserError(`${file} cannot be read.`, { cause })
  })
  const described = parse(text)
  if (described === undefined) throw new UserError(`${file} holds no JSON object.`)
  const unknown = Object.keys(described).find((name) => !fields.includes(name))
  if (unknown !== undefined)
    throw new UserError(`${file} has a field "${unknown}": a request has ${fields.join(', ')}.`)
  const { method = 'POST', path, headers = {}, body } = described
  const isComplete = typeof path === 'string' && typeof method === 'string'
  if (!isComplete || !isRecord(headers) || body === null) {
    throw new UserError(
      `${file} needs a path such as "/login"; method is text, headers an object, body an object or text.`,
    )
  }
  const line = parseRequestLine(`path in ${file}`, `${method} ${path}`, 'POST')
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const request = { ...line, headers: parseHeaders(`headers in ${file}`, lines) }
  return withBody(request, body === undefined || typeof body === 'string' ? body : JSON.stringify(body))
}

/** JSON.parse quotes the text in its errors. */
function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// The beginning of an answer, without anything of its request, which holds a password.

const SHOWN_CHARACTERS = 200
const HIDDEN = '[…]'

/**
 * One line. Hides repeated values of the request in every encoding that keeps letters and digits
 * (base64 does not), and now and then a common word.
 */
export function beginningOf(answer: string, request: HttpRequest): string {
  const secrets = [...new Set(valuesOf(request).flatMap((value) => [...spellings(value), ...words(value)]))]
  const longestFirst = secrets
    .sort((a, b) => b.length - a.length)
    .map((secret) => secret.replace(/[^A-Za-z0-9 ]/g, '\\$&'))
  const hidden = longestFirst.reduce((text, secret) => text.replace(new RegExp(secret, 'gi'), HIDDEN), answer)
  const line = hidden
    // Punctuation between hidden parts may belong to a value in an unknown encoding.
    .replace(/\[…\](?:[^A-Za-z0-9]*\[…\])+/g, HIDDEN)
    // A terminal would interpret control characters.
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  return line.length > SHOWN_CHARACTERS ? `${line.slice(0, SHOWN_CHARACTERS)}…` : line
}

/** All values in the query, the headers and the body. */
function valuesOf({ path, headers, body = '' }: HttpRequest): string[] {
  const query = new URLSearchParams(path.split('?')[1])
  const inHeaders = Object.entries(headers).flatMap(([name, value]) =>
    name === 'content-type' ? [] : [value, ...value.split(' ')],
  )
  return [...query.values(), ...inHeaders, ...inBody(body)].filter((value) => value !== '')
}

function inBody(body: string): string[] {
  try {
    const texts: string[] = []
    JSON.parse(body, (_name, value) => {
      if (typeof value === 'string' || typeof value === 'number') texts.push(String(value))
      return value
    })
    return texts
  } catch {
    return [body, ...new URLSearchParams(body).values()]
  }
}

/** As JSON, a URL, a form or HTML have it. */
function spellings(value: string): string[] {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  const asHtml = value.replace(/[&<>"']/g, (character) => entities[character] ?? character)
  const asForm = new URLSearchParams({ '': value }).toString().slice(1)
  return [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value), asForm, asHtml]
}

/** Its runs of letters and digits of ASCII, which every encoding of text leaves as they are. */
function words(value: string): string[] {
  return value.match(/[A-Za-z0-9]{2,}/g) ?? []
}
