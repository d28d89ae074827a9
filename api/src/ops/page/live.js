// The live page: asks this gateway once a second.

/** @typedef {import('../live.ts').LiveState} LiveState */

const POLL_MS = 1_000
const PATIENCE_MS = 5_000

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`the page has no #${id}`)
  return found
}

/** @template {keyof HTMLElementTagNameMap} Tag @param {Tag} tag @param {Partial<HTMLElementTagNameMap[Tag]>} properties */
const make = (tag, properties) => Object.assign(document.createElement(tag), properties)

/** @param {number} ms */
function duration(ms) {
  if (ms < 1_000) return `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`
  return ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`
}

/** @param {number} count */
const text = (count) => count.toLocaleString('en', { maximumFractionDigits: count < 10 ? 1 : 0 })

/** A number with its unit in small, and the line below it. @param {string} id @param {string} value @param {string} below */
function show(id, value, below) {
  const [number = '', ...unit] = value.split(' ')
  element(id).replaceChildren(number, make('small', { textContent: ` ${unit.join(' ')}` }))
  element(`${id}-more`).textContent = below
}

/** @param {LiveState} state */
function showTiles({ queue, line, workers, predictedWaitMs, jobsPerSecond, delayMs, requests }) {
  const { open = 0, ticketed = 0, paused = false, oldestMs = null } = queue ?? {}
  const nextMs = Math.max(oldestMs?.open ?? 0, oldestMs?.ticketed ?? 0)
  show('waiting', queue ? `${text(open + ticketed)} jobs` : '–', `the next for ${duration(nextMs)}`)
  show('line', queue ? `${text(ticketed)} people` : '–', `serving ${text(line.serving)} of ${text(line.last)}`)
  const predicted = predictedWaitMs === null ? (paused ? 'paused' : '∞') : duration(predictedWaitMs)
  show('predicted', predicted, 'predicted, for a job added now')
  const sum = (/** @type {'slots' | 'busy'} */ part) => workers.reduce((total, worker) => total + worker[part], 0)
  show('slots', `${text(sum('busy'))} of ${text(sum('slots'))}`, `some ${text(jobsPerSecond)} jobs a second`)
  const { answered, ticket, rejected, refused, failed } = requests
  show('requests', text(answered + ticket + rejected), `${text(refused)} refused, ${text(failed)} failed`)
  show('delay', duration(delayMs), 'until this gateway begins')
}

/** A count in color where there is one. @param {number} count */
const alarming = (count) => (count === 0 ? '0' : make('strong', { textContent: text(count), className: 'bad' }))

/** @param {LiveState['workers']} workers */
function showWorkers(workers) {
  element('workers').replaceChildren()
  for (const { name, slots, busy, serviceMs, finished } of workers) {
    const drawn = make('span', { role: 'img', ariaLabel: `${busy} of ${slots} busy` })
    for (let n = 0; n < slots; n++) drawn.append(make('span', { className: n < busy ? 'slot busy' : 'slot' }))
    const counts = [text(finished.answered), text(finished.skipped), alarming(finished.failed)]
    const row = element('workers').appendChild(make('tr', {}))
    for (const cell of [name, drawn, duration(serviceMs), ...counts]) row.insertCell().append(cell)
  }
}

/** @param {LiveState['findings']} findings */
function showFindings(findings) {
  const [worst] = findings
  showStatus(worst?.level ?? 'good', worst?.title ?? 'live')
  const list = element('findings')
  // A link that has the focus is not replaced.
  if (list.contains(document.activeElement)) return
  list.hidden = worst === undefined
  list.replaceChildren()
  for (const { level, title, detail, runbook } of findings) {
    const item = list.appendChild(make('li', { className: level }))
    const link = make('a', { textContent: runbook, href: `runbooks#${runbook.toLowerCase()}` })
    item.append(make('strong', { textContent: title }), make('span', { textContent: detail }), link)
  }
}

/** @param {string} className @param {string} words */
function showStatus(className, words) {
  // A screen reader would read the same words again.
  if (document.title.startsWith(words)) return
  Object.assign(element('status'), { className, textContent: words })
  document.title = `${words} · Spillway`
}

async function poll() {
  try {
    // The origin in place of the page's own address, which may hold the password.
    const { pathname } = new URL('live.json', document.baseURI)
    const response = await fetch(new URL(pathname, location.origin), { signal: AbortSignal.timeout(PATIENCE_MS) })
    // Further requests with an invalid password would count as guesses.
    if (response.status === 401) return showStatus('bad', 'signed out: reload the page')
    if (!response.ok) throw new Error(`answered with ${response.status}`)
    /** @type {LiveState} */
    const state = await response.json()
    showFindings(state.findings)
    showTiles(state)
    showWorkers(state.workers)
  } catch {
    showStatus('bad', 'this gateway does not answer')
  }
  setTimeout(poll, POLL_MS)
}

void poll()
