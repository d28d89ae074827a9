// The live page: asks once a second, draws the minutes that the gateway kept, and says so when nothing is heard.
import { drawChart, scaleOf } from './chart.js'

/** @typedef {import('../state.ts').LiveState} LiveState */
/** @typedef {LiveState['workers'][number]} Worker */

const POLL_MS = 1_000
const PATIENCE_MS = 5_000
/** The charts begin with a minute and grow to all that is kept. */
const CHART_SAMPLES_MIN = 60
/** Samples that a worker's rate is taken over, and of which the current capacity is the highest. */
const RATE_SAMPLES = 5

/** The outcomes of requests: their names here, and how alarming they are. */
const ENDS = /** @type {const} */ ([
  ['answered', 'answered', ''],
  ['ticket', 'ticket: answer later', ''],
  ['rejected', 'rejected: wrong password, bad input', ''],
  ['refused', 'refused: limits, queue full', 'warn'],
  ['failed', 'failed', 'bad'],
  ['gone', 'client went away', 'warn'],
])

/** The last few answers. @type {LiveState[]} */
const answers = []

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
 * Jobs a second of one worker, from the answers since it has been seen; undefined until there are two.
 * @param {string} id
 */
function rateOf(id) {
  const samples = answers.flatMap(({ at, workers }) => {
    const worker = workers.find((candidate) => candidate.id === id)
    return worker === undefined ? [] : [{ at, finished: finishedBy(worker) }]
  })
  const [first] = samples
  const last = samples.at(-1)
  if (first === undefined || last === undefined || last.at === first.at) return undefined
  return ((last.finished - first.finished) * 1_000) / (last.at - first.at)
}

/** @param {NonNullable<LiveState['queue']>} queue */
function describeWaiting({ waiting, deferred, oldestMs }) {
  const oldest = Math.max(oldestMs.waiting, oldestMs.deferred)
  return waiting + deferred > 0 ? `next: ${duration(oldest).join(' ')}` : ''
}

/**
 * All who hold a ticket, and how far their line has come.
 * @param {LiveState} state
 */
function showLine({ queue, lines }) {
  const people = queue === null ? undefined : queue.deferred + queue.absent
  show('line', people === undefined ? '–' : people.toLocaleString('en'), 'people')
  const served = lines.map(({ serving, last }) => `${serving.toLocaleString('en')} of ${last.toLocaleString('en')}`)
  element('serving').textContent = `serving ${served.join(', ')}`
  const away =
    queue === null ? [] : [queue.absent && `${queue.absent} absent`, queue.abandoned && `${queue.abandoned} abandoned`]
  element('abandoned').textContent = ['predicted', ...away.filter(Boolean)].join(', ')
}

/** @param {LiveState} state */
function showNow({ queue, workers, times, predictedWaitMs, jobsPerSecond, history }) {
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0)
  const busy = workers.reduce((sum, worker) => sum + worker.busy, 0)
  const rate = history.finishedPerSecond.at(-1)
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
  show('rate', rate === undefined || rate === null ? '–' : short(rate), 'a second')
  element('capacity').textContent = `of about ${short(jobsPerSecond)} possible`
  show('slots', String(busy), `of ${slots}`)
  element('workers-count').textContent = workers.length === 1 ? '1 worker' : `${workers.length} workers`
}

/** @param {LiveState['history']} history */
function showCharts({ waiting, finishedPerSecond, capacityPerSecond }) {
  const samples = Math.max(CHART_SAMPLES_MIN, waiting.length)
  const waitingMax = scaleOf(waiting)
  // A worker that has hashed nothing yet guesses its capacity: only what it is now belongs on the scale.
  const rateMax = Math.max(scaleOf(finishedPerSecond), scaleOf(capacityPerSecond.slice(-RATE_SAMPLES)))
  drawChart(element('waiting-chart'), [{ kind: 'line', values: waiting }], { samples, max: waitingMax })
  drawChart(
    element('rate-chart'),
    [
      { kind: 'dash', values: capacityPerSecond },
      { kind: 'line', values: finishedPerSecond },
    ],
    { samples, max: rateMax },
  )
  const minutes = Math.round(samples / 60)
  const span = minutes > 1 ? `${minutes} minutes` : 'minute'
  element('waiting-max').textContent = `· last ${span}, scale to ${Math.round(waitingMax).toLocaleString('en')}`
  element('rate-max').textContent = `· scale to ${short(rateMax)}`
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
    const rate = rateOf(worker.id)
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
    return row(
      [name, slots, duration(worker.serviceMs).join(' '), rate === undefined ? '–' : short(rate), ...counts],
      2,
    )
  })
  element('workers').replaceChildren(...rows)
}

/** @param {LiveState} state */
function showRequests({ gateways, requests, requestsLately, requestsPerSecond }) {
  const all = ENDS.reduce((sum, [end]) => sum + requestsLately[end], 0)
  const rows = ENDS.map(([end, words, worry]) => {
    const lately = requestsLately[end]
    const bar = document.createElement('div')
    bar.className = `bar ${worry}`
    bar.style.width = all === 0 ? '0' : `${(100 * lately) / all}%`
    bar.hidden = lately === 0
    return row([words, bar, short(requestsPerSecond[end]), requests[end].toLocaleString('en')], 2)
  })
  element('requests').replaceChildren(...rows)
  element('gateways').textContent =
    gateways.length === 1 ? 'What the gateway answers' : `What ${gateways.length} gateways answer together`
  element('gateways').title = gateways.join(', ')
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
    // The origin in place of the page's own address, which may hold the password.
    const { pathname } = new URL('live.json', document.baseURI)
    const response = await fetch(new URL(pathname, location.origin), { signal: AbortSignal.timeout(PATIENCE_MS) })
    // Asking on with a password that is no longer good would count as guessing it.
    if (response.status === 401) return showStatus('bad', 'signed out: reload the page')
    if (!response.ok) throw new Error(`answered with ${response.status}`)
    /** @type {LiveState} */
    const state = await response.json()
    answers.push(state)
    if (answers.length > RATE_SAMPLES + 1) answers.shift()
    judge(state)
    showNow(state)
    showLine(state)
    showCharts(state.history)
    showWorkers(state.workers)
    showRequests(state)
  } catch {
    showStatus('bad', 'this gateway does not answer')
  }
  setTimeout(poll, POLL_MS)
}

void poll()
