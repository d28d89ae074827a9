// The live page: asks once a second, and draws the minutes that the gateway kept.
import uPlot from './uplot.js'

/** @typedef {import('../live.ts').LiveState} LiveState */

const POLL_MS = 1_000
const PATIENCE_MS = 5_000
/** The charts begin with a minute and grow to all that is kept. */
const CHART_MIN_S = 60
const CHART_HEIGHT = 160

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`the page has no #${id}`)
  return found
}

/** @template {keyof HTMLElementTagNameMap} Tag @param {Tag} tag @param {Partial<HTMLElementTagNameMap[Tag]>} properties */
const make = (tag, properties) => Object.assign(document.createElement(tag), properties)

/** A number with its unit in small, and the line below it. @param {string} id @param {string} value */
function show(id, value, below = '') {
  const [number = '', ...unit] = value.split(' ')
  element(id).replaceChildren(number, make('small', { textContent: ` ${unit.join(' ')}` }))
  element(`${id}-more`).textContent = below
}

/** @param {number} ms */
function duration(ms) {
  if (ms < 1_000) return `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`
  return ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`
}

/** @param {number} count */
const text = (count) => count.toLocaleString('en')
/** @param {number | null | undefined} value */
const short = (value) => (value == null ? '–' : text(value < 10 ? Math.round(value * 10) / 10 : Math.round(value)))
/** @param {number} second since the epoch */
const clock = (second) => new Date(second * 1_000).toLocaleTimeString('en-GB')

/** @param {LiveState} state */
function showNow({ queue, lines, workers, times, predictedWaitMs, jobsPerSecond, history }) {
  const { waiting = 0, deferred = 0, absent = 0, paused = false, oldestMs = null } = queue ?? {}
  const nextMs = Math.max(oldestMs?.waiting ?? 0, oldestMs?.deferred ?? 0)
  show('waiting', queue ? `${text(waiting + deferred)} jobs` : '–', nextMs > 0 ? `next: ${duration(nextMs)}` : '')
  const served = lines.map(({ serving, last }) => `${text(serving)} of ${text(last)}`)
  show('line', queue ? `${text(deferred + absent)} people` : '–', `serving ${served.join(', ')}`)
  const until = predictedWaitMs === null ? (paused ? 'paused' : '∞') : duration(predictedWaitMs)
  show('predicted', until, 'predicted')
  const { queueWaitMs, serviceMs } = times ?? {}
  show('wait', queueWaitMs ? duration(queueWaitMs.p95) : '–', queueWaitMs ? `p50 ${duration(queueWaitMs.p50)}` : '')
  show('rate', `${short(history.finishedPerSecond.at(-1))} a second`, `of about ${short(jobsPerSecond)} possible`)
  const sum = (/** @type {'slots' | 'busy'} */ part) => workers.reduce((total, worker) => total + worker[part], 0)
  show('slots', `${text(sum('busy'))} of ${text(sum('slots'))}`, serviceMs ? `${duration(serviceMs.p50)} a hash` : '')
}

/** A chart of lines by their labels, and how to draw it again. @param {string} id @param {uPlot.Series[]} lines */
function chart(id, ...lines) {
  const place = element(`${id}-chart`)
  /** As the canvas takes it, also after a change between light and dark. */
  const color = (/** @type {string} */ name) => () => {
    place.style.color = `var(${name})`
    return getComputedStyle(place).color
  }
  const axis = { stroke: color('--soft'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false } }
  const times = { size: 28, space: 60, incrs: [5, 10, 15, 30, 60, 120] }
  const tooltip = make('output', { hidden: true })
  /** @param {uPlot} plot */
  function showTooltip({ cursor: { idx, left = -1 }, data: [seconds, ...columns], over }) {
    tooltip.hidden = idx == null || left < 0
    if (idx == null) return
    const values = lines.map(({ label }, n) => `${label}: ${short(columns[n]?.[idx])}`)
    tooltip.textContent = [clock(seconds[idx] ?? 0), ...values].join('\n')
    tooltip.style.left = `${Math.min(left + 10, over.clientWidth - tooltip.offsetWidth)}px`
  }
  let top = 1
  const plot = new uPlot(
    {
      ...{ width: place.clientWidth, height: CHART_HEIGHT, legend: { show: false } },
      cursor: { y: false, drag: { x: false }, sync: { key: 'time' } },
      scales: { x: { range: (_, from, to) => [Math.min(from, to - CHART_MIN_S), to] }, y: { range: () => [0, top] } },
      axes: [
        { ...axis, ...times, values: (_, seconds) => seconds.map(clock) },
        { ...axis, values: (_, values) => values.map(text) },
      ],
      series: [{}, ...lines.map((line) => ({ ...line, stroke: color(String(line.stroke)), points: { show: false } }))],
      hooks: { setCursor: [showTooltip] },
    },
    [[], ...lines.map(() => [])],
    place,
  )
  plot.over.append(tooltip)
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: CHART_HEIGHT })).observe(place)
  /** @param {number} at @param {number} scale @param {{ value: number, at: number }} peak @param {(number | null)[][]} columns */
  return (at, scale, peak, ...columns) => {
    top = Math.max(4, scale) * 1.1
    plot.setData([(columns[0] ?? []).map((_, n, { length }) => Math.round(at / 1_000) - length + n + 1), ...columns])
    const day = new Date(peak.at).toLocaleDateString('en', { weekday: 'short' })
    const highest = `Peak: ${short(peak.value)}, ${day} ${clock(peak.at / 1_000)}`
    element(`${id}-peak`).textContent = highest
    const now = lines.map(({ label }, n) => `${label}: ${short(columns[n]?.at(-1))} now`)
    place.ariaLabel = `${now.join(', ')}. ${highest}`
  }
}
const drawWaiting = chart('waiting', { label: 'waiting', stroke: '--good', width: 2 })
const finished = { label: 'finished', stroke: '--good', width: 2 }
const drawRates = chart('rate', finished, { label: 'capacity', stroke: '--soft', width: 2, dash: [5, 4] })

/** @template Item @param {string} id @param {readonly Item[]} items @param {(item: Item) => (string | Node)[]} cellsOf */
function fill(id, items, cellsOf) {
  element(id).replaceChildren()
  for (const item of items) {
    const row = element(id).appendChild(make('tr', {}))
    for (const cell of cellsOf(item)) row.insertCell().append(cell)
  }
}

/** A count in color where there is one. @param {number} count @param {string} className */
const alarming = (count, className) => (count === 0 ? '0' : make('strong', { textContent: text(count), className }))

/** @param {LiveState} state */
function showTables({ workers, gateways, outcomes, requests, requestsLately, requestsPerSecond }) {
  fill('workers', workers, ({ name, fallback, slots, busy, serviceMs, finished }) => {
    const drawn = make('span', { role: 'img', ariaLabel: `${busy} of ${slots} busy` })
    drawn.append(
      ...Array.from({ length: slots }, (_, n) => make('span', { className: n < busy ? 'slot busy' : 'slot' })),
    )
    const counts = [text(finished.answered), alarming(finished.expired, 'bad'), alarming(finished.failed, 'bad')]
    return [fallback ? `${name} (a gateway's own)` : name, drawn, duration(serviceMs), ...counts]
  })
  const all = Object.values(requestsLately).reduce((sum, count) => sum + count, 0)
  fill('requests', outcomes, ({ outcome, words, level }) => {
    const bar = make('span', { className: `bar ${level}` })
    bar.style.width = `${(90 * requestsLately[outcome]) / Math.max(1, all)}%`
    return [words, requestsLately[outcome] > 0 ? bar : '', short(requestsPerSecond[outcome]), text(requests[outcome])]
  })
  fill('gateways', gateways, ({ name, answeredPerSecond, lately, delayMs }) => {
    const counts = [alarming(lately.overloaded, 'warn'), alarming(lately.failed, 'bad')]
    return [name, duration(delayMs), short(answeredPerSecond), ...counts]
  })
}

/** @param {LiveState['findings']} findings */
function showFindings(findings) {
  const [worst] = findings
  showStatus(worst?.level ?? 'good', worst?.title ?? 'live')
  const list = element('findings')
  // A link that has the focus stays.
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
  // The same words again would be read aloud again.
  if (document.title.startsWith(words)) return
  Object.assign(element('status'), { className, textContent: words })
  document.title = `${words} · Spillway`
}

async function poll() {
  try {
    // The origin in place of the page's own address, which may hold the password.
    const { pathname } = new URL('live.json', document.baseURI)
    const response = await fetch(new URL(pathname, location.origin), { signal: AbortSignal.timeout(PATIENCE_MS) })
    // Asking on with a password that is no longer good would count as guessing it.
    if (response.status === 401) return showStatus('bad', 'signed out: reload the page')
    if (!response.ok) throw new Error(`answered with ${response.status}`)
    /** @type {LiveState} */
    const state = await response.json()
    const { waiting, finishedPerSecond, capacityPerSecond, scales, peaks } = state.history
    showFindings(state.findings)
    showNow(state)
    drawWaiting(state.at, scales.waiting, peaks.waiting, waiting)
    drawRates(state.at, scales.perSecond, peaks.finishedPerSecond, finishedPerSecond, capacityPerSecond)
    showTables(state)
  } catch {
    showStatus('bad', 'this gateway does not answer')
  }
  setTimeout(poll, POLL_MS)
}

void poll()
