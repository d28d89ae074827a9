// A page to log in and to wait on. With a bundler the import is from '@spillway/client/browser'.
import { login, logout, restore, resume } from './spillway/browser.js'

const baseUrl = document.querySelector('meta[name="spillway-gateway"]').content
const [form, waiting, inside] = ['form', 'waiting', 'inside'].map((id) => document.getElementById(id))
const [problem, numbers, position, eta, bar] = ['problem', 'numbers', 'position', 'eta', 'bar'].map((id) =>
  document.getElementById(id),
)
const [state, cancel, leave] = ['state', 'cancel', 'leave'].map((id) => document.getElementById(id))

/** What a reader of the screen hears: it changes with the news, and not with every second. */
const words = {
  sending: () => 'You are being logged in.',
  queued: ({ position, etaS }) =>
    [
      'Your place in the queue is kept.',
      position === undefined ? '' : `${position} ${position === 1 ? 'person is' : 'people are'} ahead of you.`,
      etaS === undefined ? '' : `It is expected to take ${inWords(etaS)}.`,
    ].join(' '),
  busy: () => 'The queue is full. You are put into it as soon as there is room.',
  offline: () => 'The connection is lost. It is tried again automatically.',
}

const problems = {
  invalid_credentials: 'The e-mail address or the password is wrong.',
  invalid_request: 'The e-mail address or the password is not valid.',
  gave_up: 'It has taken too long. Please try again later.',
}
const LOST_TICKET = 'Your place in the queue was lost while the page was away. Please enter your password again.'
/** A login that takes no longer needs no page to wait on. */
const SHOW_AFTER_MS = 800

let aborter = new AbortController()
/** When the answer is expected, and when waiting for it began, in epoch milliseconds. */
let expected

function show(section) {
  for (const each of [form, waiting, inside]) each.hidden = each !== section
  section.querySelector('h1').focus()
}

function showWaiting() {
  if (waiting.hidden) show(waiting)
}

function inWords(seconds) {
  if (seconds <= 1) return 'a moment'
  return seconds < 90 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`
}

function onProgress(progress) {
  if (progress.state !== 'sending') showWaiting()
  const text = words[progress.state](progress)
  if (state.textContent !== text) state.textContent = text
  numbers.hidden = progress.position === undefined && progress.etaS === undefined
  position.textContent = progress.position ?? '–'
  const now = Date.now()
  if (progress.etaS === undefined) expected = undefined
  else expected = { begin: expected?.begin ?? now, end: now + progress.etaS * 1_000 }
  tick()
}

function tick() {
  const leftMs = expected && Math.max(0, expected.end - Date.now())
  eta.textContent = leftMs === undefined ? '–' : leftMs < 1_000 ? 'a moment' : inClock(Math.ceil(leftMs / 1_000))
  bar.style.width = expected ? `${100 - (100 * leftMs) / Math.max(1, expected.end - expected.begin)}%` : '0'
}

function inClock(seconds) {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** Shows the page to wait on for as long as this takes, if it takes long; then who is inside, or the form. */
async function wait(begin) {
  aborter = new AbortController()
  expected = undefined
  problem.textContent = ''
  const showing = setTimeout(showWaiting, SHOW_AFTER_MS)
  const ticking = setInterval(tick, 1_000)
  try {
    const tokens = await begin({ baseUrl, onProgress, signal: aborter.signal, sessionCookie: true })
    if (tokens === undefined) return
    // A page of your own calls your application with tokens.accessToken. What outlives the page is in a cookie that no script reads.
    form.reset()
    show(inside)
  } catch (error) {
    show(form)
    if (aborter.signal.aborted) return
    problem.textContent = error.needsPassword ? LOST_TICKET : (problems[error.code] ?? error.message)
    form.elements.password.select()
  } finally {
    clearTimeout(showing)
    clearInterval(ticking)
  }
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  const { email, password } = form.elements
  void wait((options) => login({ ...options, email: email.value, password: password.value }))
})
cancel.addEventListener('click', () => aborter.abort())
leave.addEventListener('click', async () => {
  await logout({ baseUrl })
  show(form)
})
// After a reload: the ticket is still there, the password is not. Or the browser has the cookie of a session.
void wait(async (options) => (await resume(options)) ?? (await restore({ ...options, onProgress: undefined })))
