// A page to log in and to wait on. With a bundler the import is from '@spillway/client/browser'.
import { login, logout, restore, resume } from './spillway/browser.js'
import { inClock, problemOf, supportCode, words } from './words.js'

const baseUrl = document.querySelector('meta[name="spillway-gateway"]').content
const element = (id) => document.getElementById(id)
const [form, waiting, inside] = ['form', 'waiting', 'inside'].map(element)
const [title, state, numbers, position] = ['waiting-title', 'state', 'numbers', 'position'].map(element)
const [eta, bar, code] = ['eta', 'bar', 'code'].map(element)
const [submit, leave] = ['submit', 'leave'].map(element)

/** A login that takes no longer needs no page to wait on. */
const SHOW_AFTER_MS = 800

/** Ends the call that the page makes. There is one at a time: a login, what is left of one after a reload, or a log out. */
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

function onProgress(progress) {
  if (progress.state !== 'sending') showWaiting()
  const { title: heading, text } = words[progress.state]
  for (const [part, news] of [
    [title, heading],
    [state, text(progress)],
  ])
    if (part.textContent !== news) part.textContent = news
  code.textContent = supportCode(progress)
  numbers.hidden = progress.etaS === undefined
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

/** Begins a call in place of the one before it, whose end then changes nothing. Resolves with what it found, or undefined. */
async function call(begin, section) {
  aborter.abort()
  const own = new AbortController()
  aborter = own
  for (const problem of document.querySelectorAll('[role="alert"]')) problem.textContent = ''
  try {
    const found = await begin({ baseUrl, signal: own.signal, sessionCookie: true })
    return own.signal.aborted ? undefined : found
  } catch (error) {
    if (own.signal.aborted) return undefined
    show(section)
    section.querySelector('[role="alert"]').textContent = `${problemOf(error)} ${supportCode(error)}`.trim()
    if (section === form) form.elements.password.select()
    return undefined
  }
}

/** Shows the page to wait on for as long as a login takes, if somebody asked for it and it takes long; then who is inside, or the form. */
async function wait(begin, isAsked) {
  expected = undefined
  const showing = isAsked ? setTimeout(showWaiting, SHOW_AFTER_MS) : undefined
  const ticking = setInterval(tick, 1_000)
  const tokens = await call((options) => begin({ ...options, onProgress }), form)
  clearTimeout(showing)
  clearInterval(ticking)
  if (tokens !== undefined) enter()
}

// A page of your own calls your application with tokens.accessToken. What outlives the page is in a cookie that no script reads.
function enter() {
  form.reset()
  show(inside)
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  const { email, password } = form.elements
  onProgress({ state: 'sending' })
  void wait((options) => login({ ...options, email: email.value, password: password.value }), true)
})
element('cancel').addEventListener('click', () => {
  aborter.abort()
  show(form)
})
leave.addEventListener('click', async () => {
  leave.disabled = true
  const hasLeft = await call(async (options) => {
    await logout({ ...options, giveUpAfterMs: 15_000 })
    return true
  }, inside)
  leave.disabled = false
  if (hasLeft) show(form)
})

// After a reload: the ticket is still there, the password is not. Or the browser has the cookie of a session: the form is there meanwhile,
// and a login ends this call.
submit.disabled = false
void wait(async (options) => {
  const tokens = await resume(options)
  if (tokens !== undefined) return tokens
  return restore({ ...options, onProgress: undefined }).catch(() => undefined)
}, false)
