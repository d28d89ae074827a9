// The page of the audit: shows the events that match the query of its URL.

/** @typedef {{ at: string, sentence: string, userId: string | null, address: string | null, requestId: string | null }} Told */
/** @typedef {{ now: string | null, events: Told[], next: string | null }} Found */

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`the page has no #${id}`)
  return found
}

/** @param {string} text @param {string} path @param {Record<string, string>} parameters */
function link(text, path, parameters) {
  return Object.assign(document.createElement('a'), {
    textContent: text,
    href: `${path}?${new URLSearchParams(parameters)}`,
  })
}

/** A search for the same. @param {string | null} text */
const searchFor = (text) => (text === null ? '' : link(text, 'audit', { q: text }))

/** The origin in place of the page's own address, which may hold the password. @param {string} path */
const fetched = (path) =>
  fetch(new URL(new URL(path, document.baseURI).pathname, location.origin) + path.replace(/^[^?]*/, ''))

/** Forms send their empty fields. */
const given = Object.fromEntries([...new URLSearchParams(location.search)].filter(([, value]) => value !== ''))
for (const [name, value] of Object.entries(given)) {
  const field = document.querySelector(`[name="${CSS.escape(name)}"]`)
  if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) field.value = value
}
// Fields have local time, the query has UTC.
const utc = (/** @type {[string, string]} */ [name, value]) =>
  name === 'from' || name === 'until' ? [name, new Date(value).toISOString()] : [name, value]
/** @type {Record<string, string>} */
const asked = Object.fromEntries(Object.entries(given).map(utc))

async function show() {
  const response = await fetched(`audit.json?${new URLSearchParams(asked)}`)
  if (!response.ok) throw new Error(await refusalOf(response))
  /** @type {Found} */
  const { now, events, next } = await response.json()
  element('now').textContent = now ?? ''
  for (const { at, sentence, userId, address, requestId } of events) {
    const row = document.createElement('tr')
    const time = Object.assign(document.createElement('time'), { dateTime: at, title: at })
    time.textContent = new Date(at).toLocaleString()
    for (const cell of [time, sentence, ...[userId, address, requestId].map(searchFor)]) row.insertCell().append(cell)
    element('events').append(row)
  }
  element('found').textContent =
    events.length === 0
      ? 'Nothing was found'
      : `${events.length} event${events.length === 1 ? '' : 's'}, the latest first`
  if (next !== null) element('links').append(link('Earlier ones', 'audit', { ...given, before: next }))
  const { before: _, ...all } = asked
  element('links').append(link('All as NDJSON', 'audit.ndjson', all))
}

/** @param {Response} response */
async function refusalOf(response) {
  /** @type {{ detail?: string, errors?: { field: string, message: string }[] }} */
  const { detail = `The gateway answered with ${response.status}`, errors = [] } = await response
    .json()
    .catch(() => ({}))
  return [detail, ...errors.map(({ field, message }) => `${field} ${message}`)].join(': ')
}

/** Where the job of a support code waits, which the audit knows only once it has ended. */
async function showJob() {
  const response = /^[\w-]{8,64}$/.test(asked.q ?? '') ? await fetched(`v1/jobs/${asked.q}`) : undefined
  if (response?.ok !== true) return
  /** @type {{ page: string, state: string, paused: boolean }} */
  const { page, state, paused } = await response.json()
  const board = Object.assign(document.createElement('a'), { textContent: 'job', href: `.${page}` })
  element('job').append('Its ', board, ` on the board: ${state}${paused ? ', in a paused queue' : ''}`)
}

show().catch((error) => {
  element('found').textContent = error.message
})
showJob().catch(() => undefined)
