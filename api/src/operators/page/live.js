// The live page: asks once a second, and draws the minutes that the gateway kept.
import uPlot from './uplot.js'

/** @typedef {import('../live.ts').LiveState} LiveState */

const POLL_MS = 1_000
const PATIENCE_MS = 5_000
/** The charts begin with a minute and grow to all that is kept. */
const CHART_SAMPLES_MIN = 60
const CHART_HEIGHT = 130
/** Answers that the rate of a worker is computed from. */
const RATE_ANSWERS = 6

/** The last few answers. @type {LiveState[]} */
const answers = []

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`the page has no #${id}`)
  return found
}

/** A number with its unit in small, and the line below it. @param {string} id @param {readonly string[]} value */
function show(id, [value = '–', unit = ''], below = '') {
  element(id).replaceChildren(value, Object.assign(document.createElement('small'), { textContent: ` ${unit}` }))
  element(`${id}-more`).textContent = below
}

/** @param {number} ms */
function duration(ms) {
  if (ms < 1_000) return [ms < 10 ? ms.toFixed(1) : ms.toFixed(0), 'ms']
  return ms < 120_000 ? [(ms / 1_000).toFixed(1), 's'] : [(ms / 60_000).toFixed(1), 'min']
}

/** @param {number} value */
const short = (value) => (value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString('en'))
/** @param {number} count @param {string} one */
const counted = (count, one) => `${count.toLocaleString('en')} ${one}${count === 1 ? '' : 's'}`

/** @param {LiveState} state */
function showNow({ queue, lines, workers, times, predictedWaitMs, jobsPerSecond, history }) {
  const text = (/** @type {number} */ count) => count.toLocaleString('en')
  const { waiting = 0, deferred = 0, absent = 0, abandoned = 0, paused = false, oldestMs = null } = queue ?? {}
  const nextMs = Math.max(oldestMs?.waiting ?? 0, oldestMs?.deferred ?? 0)
  show(
    'waiting',
    queue ? [text(waiting + deferred), 'jobs'] : [],
    nextMs > 0 ? `next: ${duration(nextMs).join(' ')}` : '',
  )
  const served = lines.map(({ serving, last }) => `${text(serving)} of ${text(last)}`)
  show('line', queue ? [text(deferred + absent), 'people'] : [], `serving ${served.join(', ')}`)
  const away = [absent && `${absent} absent`, abandoned && `${abandoned} abandoned`].filter(Boolean)
  const until = predictedWaitMs === null ? [paused ? 'paused' : '∞'] : duration(predictedWaitMs)
  show('predicted', until, ['predicted', ...away].join(', '))
  const [wait, service] = [times?.queueWaitMs, times?.serviceMs]
  const of = times ? `, of ${counted(times.jobs, 'job')}` : ''
  show(
    'wait',
    wait ? duration(wait.p95) : [],
    wait ? `p50 ${duration(wait.p50).join(' ')}${of}` : 'no job in the last minute',
  )
  show('service', service ? duration(service.p50) : [], service ? `p95 ${duration(service.p95).join(' ')}` : '')
  const rate = history.finishedPerSecond.at(-1) ?? null
  show('rate', rate === null ? [] : [short(rate), 'a second'], `of about ${short(jobsPerSecond)} possible`)
  const sum = (/** @type {'slots' | 'busy'} */ part) => workers.reduce((total, worker) => total + worker[part], 0)
  show('slots', [String(sum('busy')), `of ${sum('slots')}`], counted(workers.length, 'worker'))
}

/** A chart of lines, each with a colour of the style, and how to draw it again. @param {string} id @param {uPlot.Series[]} lines */
function chart(id, ...lines) {
  const place = element(id)
  /** As the canvas takes it, also after a change between light and dark. */
  const color = (/** @type {string} */ name) => () => {
    place.style.color = `var(${name})`
    return getComputedStyle(place).color
  }
  const axis = { stroke: color('--soft'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false } }
  let top = 1
  const plot = new uPlot(
    {
      ...{ width: place.clientWidth, height: CHART_HEIGHT },
      ...{ legend: { show: false }, cursor: { show: false } },
      scales: { x: { time: false }, y: { range: () => [0, top] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map((s) => (s === 0 ? 'now' : `${s} s`)) }, axis],
      series: [{}, ...lines.map((line) => ({ ...line, stroke: color(String(line.stroke)), points: { show: false } }))],
    },
    [[], ...lines.map(() => [])],
    place,
  )
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: CHART_HEIGHT })).observe(place)
  return (/** @type {number} */ scale, /** @type {(number | null)[][]} */ ...columns) => {
    top = scale
    const length = Math.max(CHART_SAMPLES_MIN, columns[0]?.length ?? 0)
    const padded = columns.map((column) => [...Array.from({ length: length - column.length }, () => null), ...column])
    plot.setData([Array.from({ length }, (_, n) => n - length + 1), ...padded])
  }
}
const drawWaiting = chart('waiting-chart', { stroke: '--good', width: 2 })
const drawRates = chart('rate-chart', { stroke: '--soft', width: 2, dash: [5, 4] }, { stroke: '--good', width: 2 })

/** Jobs a second of a worker since it has been seen. @param {string} id */
function rateOf(id) {
  const seen = answers.flatMap(({ at, workers }) =>
    workers.flatMap((worker) => (worker.id === id ? [{ at, ...worker.finished }] : [])),
  )
  const [first, last] = [seen[0], seen.at(-1)]
  if (first === undefined || last === undefined || last.at === first.at) return '–'
  const done = last.answered + last.expired + last.failed - first.answered - first.expired - first.failed
  return short((done * 1_000) / (last.at - first.at))
}

/** @param {string} id @param {(string | Node)[][]} rows */
function fill(id, rows) {
  element(id).replaceChildren()
  for (const cells of rows) {
    const row = element(id).appendChild(document.createElement('tr'))
    for (const cell of cells) row.insertCell().append(cell)
  }
}

/** @param {string} className */
const mark = (className) => Object.assign(document.createElement('span'), { className })

/** @param {LiveState} state */
function showTables({ workers, gateways, outcomes, requests, requestsLately, requestsPerSecond }) {
  const workerRows = workers.map(({ id, name, fallback, slots, busy, serviceMs, finished }) => {
    const drawn = mark('')
    drawn.setAttribute('aria-label', `${busy} of ${slots} busy`)
    drawn.append(...Array.from({ length: slots }, (_, n) => mark(n < busy ? 'slot busy' : 'slot')))
    const counts = [finished.answered, finished.expired, finished.failed].map((count) => count.toLocaleString('en'))
    const title = fallback ? `${name} (a gateway's own)` : name
    return [title, drawn, duration(serviceMs).join(' '), rateOf(id), ...counts]
  })
  fill('workers', workerRows)
  const all = Object.values(requestsLately).reduce((sum, count) => sum + count, 0)
  const outcomeRows = outcomes.map(({ outcome, words, level }) => {
    const bar = mark('bar')
    bar.dataset.state = level
    bar.style.width = `${(90 * requestsLately[outcome]) / Math.max(1, all)}%`
    bar.hidden = requestsLately[outcome] === 0
    return [words, bar.hidden ? '' : bar, short(requestsPerSecond[outcome]), requests[outcome].toLocaleString('en')]
  })
  fill('requests', outcomeRows)
  element('gateways').textContent = `Answers of ${counted(gateways.length, 'gateway')}`
  element('gateways').title = gateways.join(', ')
}

/** @param {'good' | 'warn' | 'bad'} state @param {string} words */
function showStatus(state, words) {
  element('status').dataset.state = state
  element('status').textContent = words
  document.title = state === 'good' ? 'Spillway' : `${words} · Spillway`
}

/** @param {LiveState} state */
function judge({ queue, workers }) {
  if (queue === null) return showStatus('bad', 'Redis does not answer')
  if (queue.paused) return showStatus('bad', 'the queue is paused: nobody gets in')
  if (workers.length === 0) return showStatus('bad', 'no worker')
  if (workers.every(({ fallback }) => fallback)) return showStatus('warn', 'no worker: gateways hash')
  return showStatus('good', 'live')
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
    answers.splice(0, answers.length, ...answers.slice(1 - RATE_ANSWERS), state)
    judge(state)
    showNow(state)
    drawWaiting(state.history.scales.waiting, state.history.waiting)
    drawRates(state.history.scales.perSecond, state.history.capacityPerSecond, state.history.finishedPerSecond)
    showTables(state)
  } catch {
    showStatus('bad', 'this gateway does not answer')
  }
  setTimeout(poll, POLL_MS)
}

void poll()
