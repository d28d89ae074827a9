// A file that describes the request of a login: keeps a password out of the list of processes and of the shell's history.
import { readFile } from 'node:fs/promises'
import { type HttpRequest, parseHeaders, parseRequestLine, withBody } from './request.ts'
import { UsageError } from './usage-error.ts'

const fields = ['method', 'path', 'headers', 'body']

/**
 * Reads JSON: `{"method": "POST", "path": "/login", "headers": {…}, "body": {…} or "…"}`.
 *
 * @throws {@link UsageError}, which quotes nothing of the file but names of fields
 */
export async function readRequest(file: string): Promise<HttpRequest> {
  const text = await readFile(file, 'utf8').catch((cause) => {
    throw new UsageError(`${file} cannot be read.`, { cause })
  })
  const described = parse(text)
  if (described === undefined) throw new UsageError(`${file} holds no JSON object.`)
  const unknown = Object.keys(described).find((name) => !fields.includes(name))
  if (unknown !== undefined)
    throw new UsageError(`${file} has a field "${unknown}": a request has ${fields.join(', ')}.`)
  const { method = 'POST', path, headers = {}, body } = described
  const isComplete = typeof path === 'string' && typeof method === 'string'
  if (!isComplete || !isRecord(headers) || body === null) {
    throw new UsageError(
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
