// A page to log in and to wait on. With a bundler the import is from '@spillway/client/follow'.
import { login, logout, refresh, resume } from './follow.js'

const baseUrl = document.querySelector('meta[name="spillway-gateway"]').content
const [form, waiting, inside] = ['form', 'waiting', 'inside'].map((id) => document.getElementById(id))
const [title, state, code, problem] = ['title', 'state', 'code', 'problem'].map((id) => document.getElementById(id))

/** A login that takes no longer needs no page to wait on. */
const SHOW_AFTER_MS = 800

const titles = {
  sending: 'Logging in',
  queued: 'You are in the queue',
  paused: 'Logins are paused',
  busy: 'Please wait',
  offline: 'No connection',
}

const problems = {
  invalid_credentials: 'The e-mail address or the password is wrong.',
  invalid_request: 'The e-mail address or the password is not valid.',
  gave_up: 'There was no answer. Please try again.',
}

/** Ends the call that the page makes: there is one at a time. */
let aborter = new AbortController()

function show(section) {
  for (const each of [form, waiting, inside]) each.hidden = each !== section
  section.querySelector('h1').focus()
}

// A screen reader hears the text when it changes.
function onProgress({ state: now, position, etaS, requestId }) {
  if (now !== 'sending' && waiting.hidden) show(waiting)
  title.textContent = titles[now]
  const ahead =
    position === undefined ? '' : `${position} ${position === 1 ? 'person is' : 'people are'} ahead of you. `
  const expected =
    etaS === undefined
      ? ''
      : `It is expected to take ${etaS < 90 ? `${etaS} seconds` : `${Math.round(etaS / 60)} minutes`}.`
  state.textContent = ahead + expected
  code.textContent = requestId === undefined ? '' : `Support code: ${requestId}`
}

/** Begins a call in place of the one before it, whose end then changes nothing. */
async function call(begin, whenFailed) {
  aborter.abort()
  aborter = new AbortController()
  const { signal } = aborter
  problem.textContent = ''
  try {
    const found = await begin({ baseUrl, signal, sessionCookie: true, onProgress })
    if (!signal.aborted && found !== undefined) show(found)
  } catch (error) {
    if (signal.aborted) return
    show(whenFailed)
    problem.textContent = error.needsPassword
      ? 'Your place in the queue has ended while the page was away. Please log in again.'
      : `${problems[error.code] ?? error.message} ${code.textContent}`
  }
}

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const [email, password] = [form.elements.email.value, form.elements.password.value]
  const showing = setTimeout(show, SHOW_AFTER_MS, waiting)
  await call(async (options) => {
    // A page of your own calls your application with the access token. What outlives the page is in a cookie that no script reads.
    await login({ ...options, email, password })
    form.reset()
    return inside
  }, form)
  clearTimeout(showing)
})

document.getElementById('cancel').addEventListener('click', () => {
  aborter.abort()
  show(form)
})

document.getElementById('leave').addEventListener('click', () =>
  call(async (options) => {
    await logout({ ...options, onProgress: undefined })
    return form
  }, inside),
)

// After a reload the ticket is still there, or the browser has the cookie of a session. The form is there meanwhile, and a login ends this call.
document.getElementById('submit').disabled = false
void call(async (options) => {
  const tokens =
    (await resume(options)) ?? (await refresh({ ...options, onProgress: undefined }).catch(() => undefined))
  return tokens && inside
}, form)
