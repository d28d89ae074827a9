// The beginning of an answer, to be shown: nothing of the request that it answers is in it, since that holds a password.
import type { HttpRequest } from './request.ts'

const SHOWN_CHARACTERS = 200
const HIDDEN = '[…]'

/**
 * One line. What the answer repeats of the request's values is hidden, in every encoding that leaves letters and digits as they are (which
 * base64 does not), and now and then a common word with it.
 */
export function beginningOf(answer: string, request: HttpRequest): string {
  const secrets = [...new Set(valuesOf(request).flatMap((value) => [...spellings(value), ...words(value)]))]
  const longestFirst = secrets
    .sort((a, b) => b.length - a.length)
    .map((secret) => secret.replace(/[^A-Za-z0-9 ]/g, '\\$&'))
  const hidden = longestFirst.reduce((text, secret) => text.replace(new RegExp(secret, 'gi'), HIDDEN), answer)
  const line = hidden
    // Punctuation between hidden parts is hidden too: it may belong to a value in an unknown encoding.
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
