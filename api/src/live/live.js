// The live page: asks once a second, keeps five minutes, works out rates, and says so when nothing is heard.
import { drawChart } from './chart.js'

/** @typedef {import('../live-state.ts').LiveState} LiveState */
/** @typedef {LiveState['workers'][number]} Worker */

const POLL_MS = 1_000
const PATIENCE_MS = 5_000
const KEPT = 300
/** The charts begin with a minute and grow to all that is kept. */
const CHART_SAMPLES_MIN = 60
/** Samples that a rate is taken over, and those of the last minute. */
const RATE_SAMPLES = 5
const MINUTE_SAMPLES = 60

/** What ends a request can come to: what they are called here, and how much they are to worry about. */
const ENDS = /** @type {const} */ ([
  ['answered', 'answered', ''],
  ['ticket', 'ticket: answer later', ''],
  ['rejected', 'rejected: wrong password, bad input', ''],
  ['refused', 'refused: limits, queue full', 'warn'],
  ['failed', 'failed', 'bad'],
  ['gone', 'client went away', 'warn'],
])

/** @type {LiveState[]} */
const history = []
/** @type {{ waiting: number | undefined, rate: number | undefined, capacity: number | undefined }[]} */
const drawn = []

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`the page has no #${id}`)
  return found
}

/**
 * A number with its unit in small.
 * @param {string} id
 * @param {string} value
 * @param {string} [unit]
 */
function show(id, value, unit) {
  const small = document.createElement('small')
  small.textContent = unit === undefined ? '' : ` ${unit}`
  element(id).replaceChildren(value, small)
}

/**
 * @param {number} ms
 * @returns {[value: string, unit: string]}
 */
function duration(ms) {
  if (ms < 1_000) return [ms < 10 ? ms.toFixed(1) : ms.toFixed(0), 'ms']
  return ms < 120_000 ? [(ms / 1_000).toFixed(1), 's'] : [(ms / 60_000).toFixed(1), 'min']
}

/** @param {number} value */
function short(value) {
  return value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString('en')
}

/** @param {Worker | undefined} worker */
function finishedBy(worker) {
  if (worker === undefined) return 0
  const { answered, expired, failed } = worker.finished
  return answered + expired + failed
}

/**
 * Jobs a second of one worker, from the samples since it has been seen.
 * @param {string} id
 */
function rateOf(id) {
  const samples = history.slice(-RATE_SAMPLES - 1).flatMap(({ at, workers }) => {
    const worker = workers.find((candidate) => candidate.id === id)
    return worker === undefined ? [] : [{ at, finished: finishedBy(worker) }]
  })
  const [first] = samples
  const last = samples.at(-1)
  if (first === undefined || last === undefined || last.at === first.at) return 0
  return ((last.finished - first.finished) * 1_000) / (last.at - first.at)
}

/** @param {NonNullable<LiveState['queue']>} queue */
function describeWaiting({ waiting, deferred, oldestMs }) {
  const oldest = Math.max(oldestMs.waiting, oldestMs.deferred)
  const parts = []
  if (waiting + deferred > 0) parts.push(`next: ${duration(oldest).join(' ')}`)
  if (deferred > 0) parts.push(`${deferred.toLocaleString('en')} deferred`)
  return parts.join(', ')
}

/** @param {LiveState} state */
function showNow({ queue, workers, times, predictedWaitMs, jobsPerSecond }) {
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0)
  const busy = workers.reduce((sum, worker) => sum + worker.busy, 0)
  const rate = workers.reduce((sum, { id }) => sum + rateOf(id), 0)
  const depth = queue === null ? undefined : queue.waiting + queue.deferred
  show('waiting', depth === undefined ? '–' : depth.toLocaleString('en'), 'jobs')
  element('oldest').textContent = queue === null ? '' : describeWaiting(queue)
  if (predictedWaitMs === null) show('predicted', '∞')
  else show('predicted', ...duration(predictedWaitMs))
  if (times === null) {
    for (const id of ['wait', 'service']) show(id, '–')
  } else {
    show('wait', ...duration(times.queueWaitMs.p95))
    element('wait-sub').textContent = `p50 ${duration(times.queueWaitMs.p50).join(' ')}, of ${times.jobs}`
    show('service', ...duration(times.serviceMs.p50))
    element('service-sub').textContent = `p95 ${duration(times.serviceMs.p95).join(' ')}`
  }
  show('rate', short(rate), 'a second')
  element('capacity').textContent = `of about ${short(jobsPerSecond)} possible`
  show('slots', String(busy), `of ${slots}`)
  element('workers-count').textContent = workers.length === 1 ? '1 worker' : `${workers.length} workers`
  drawn.push({ waiting: depth, rate: queue === null ? undefined : rate, capacity: jobsPerSecond })
  if (drawn.length > KEPT) drawn.shift()
}

function showCharts() {
  /** @param {(number | undefined)[]} values */
  const top = (...values) => Math.max(1, ...values.map((value) => value ?? 0))
  const waiting = drawn.map((sample) => sample.waiting)
  const rates = drawn.map((sample) => sample.rate)
  const capacities = drawn.map((sample) => sample.capacity)
  const waitingMax = top(...waiting)
  const rateMax = top(...rates, ...capacities)
  const samples = Math.max(CHART_SAMPLES_MIN, drawn.length)
  drawChart(element('waiting-chart'), [{ kind: 'line', values: waiting }], { samples, max: waitingMax })
  drawChart(
    element('rate-chart'),
    [
      { kind: 'dash', values: capacities },
      { kind: 'line', values: rates },
    ],
    { samples, max: rateMax },
  )
  const span = samples > CHART_SAMPLES_MIN ? `${Math.round(samples / 60)} minutes` : 'minute'
  element('waiting-max').textContent = `· last ${span}, up to ${Math.round(waitingMax).toLocaleString('en')}`
  element('rate-max').textContent = `· up to ${short(rateMax)}`
}

/**
 * @param {(string | Node)[]} cells
 * @param {number} numbersFrom the first cell that is a number
 */
function row(cells, numbersFrom) {
  const tr = document.createElement('tr')
  for (const [index, cell] of cells.entries()) {
    const td = document.createElement('td')
    if (index >= numbersFrom) td.className = 'number'
    td.append(cell)
    tr.append(td)
  }
  return tr
}

/** @param {Worker[]} workers */
function showWorkers(workers) {
  const rows = workers.map((worker) => {
    const slots = document.createElement('span')
    slots.setAttribute('aria-label', `${worker.busy} of ${worker.slots} busy`)
    for (let index = 0; index < worker.slots; index++) {
      const slot = document.createElement('i')
      slot.className = index < worker.busy ? 'slot busy' : 'slot'
      slots.append(slot)
    }
    const { answered, expired, failed } = worker.finished
    const counts = [answered, expired, failed].map((count) => count.toLocaleString('en'))
    const name = worker.fallback ? `${worker.name} (a gateway's own)` : worker.name
    return row([name, slots, duration(worker.serviceMs).join(' '), short(rateOf(worker.id)), ...counts], 2)
  })
  element('workers').replaceChildren(...rows)
}

/** @param {LiveState} state */
function showRequests({ at, requests }) {
  const before = history.at(-MINUTE_SAMPLES) ?? history[0]
  const seconds = before === undefined ? 0 : (at - before.at) / 1_000
  const lately = ENDS.map(([end]) => Math.max(0, requests[end] - (before?.requests[end] ?? 0)))
  const all = lately.reduce((sum, count) => sum + count, 0)
  const rows = ENDS.map(([end, words, worry], index) => {
    const bar = document.createElement('div')
    bar.className = `bar ${worry}`
    bar.style.width = all === 0 ? '0' : `${(100 * (lately[index] ?? 0)) / all}%`
    bar.hidden = lately[index] === 0
    const rate = seconds === 0 ? 0 : (lately[index] ?? 0) / seconds
    return row([words, bar, short(rate), requests[end].toLocaleString('en')], 2)
  })
  element('requests').replaceChildren(...rows)
}

/**
 * @param {'good' | 'wait' | 'bad'} state
 * @param {string} words
 */
function showStatus(state, words) {
  const status = element('status')
  if (status.textContent === words) return
  status.dataset.state = state
  status.textContent = words
  document.title = state === 'good' ? 'Spillway' : `${words} · Spillway`
}

/** @param {LiveState} state */
function judge({ queue, workers }) {
  if (queue === null) return showStatus('bad', 'Redis does not answer')
  if (queue.paused) return showStatus('bad', 'the queue is paused')
  if (workers.length === 0) return showStatus('bad', 'no worker')
  if (workers.every(({ fallback }) => fallback)) return showStatus('wait', 'no worker: gateways hash')
  return showStatus('good', 'live')
}

async function poll() {
  try {
    // Not relative to the page's own address, which may hold the password.
    const response = await fetch(new URL('/live.json', location.origin), { signal: AbortSignal.timeout(PATIENCE_MS) })
    // Asking on with a password that is no longer good would count as guessing it.
    if (response.status === 401) return showStatus('bad', 'signed out: reload the page')
    if (!response.ok) throw new Error(`answered with ${response.status}`)
    /** @type {LiveState} */
    const state = await response.json()
    history.push(state)
    if (history.length > KEPT) history.shift()
    judge(state)
    showNow(state)
    showCharts()
    showWorkers(state.workers)
    showRequests(state)
  } catch {
    showStatus('bad', 'this gateway does not answer')
  }
  setTimeout(poll, POLL_MS)
}

void poll()
