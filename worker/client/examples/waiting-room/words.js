// What the waiting room says. A test compares `words` with the states of the client.

/** Of each state: the heading, and the text that a screen reader hears. It changes with the news, and not with every second. */
export const words = {
  sending: { title: 'Logging in', text: () => 'You are being logged in.' },
  solving: {
    title: 'Logging in',
    text: () =>
      'Somebody has tried passwords of this account. This page proves that you are no program: it takes some seconds.',
  },
  queued: {
    title: 'You are in the queue',
    text: ({ position, etaS }) =>
      [
        'Your place in the queue is kept.',
        ahead(position),
        etaS === undefined ? '' : `It is expected to take ${inWords(etaS)}.`,
      ].join(' '),
  },
  paused: {
    title: 'Logins are paused',
    text: ({ position }) =>
      ['Your place in the queue is kept. Nobody gets in until logins are resumed.', ahead(position)].join(' '),
  },
  busy: { title: 'Please wait', text: () => 'There is no room at the moment. Your login is sent again automatically.' },
  offline: { title: 'No connection', text: () => 'There is no answer. Your login is sent again automatically.' },
}

/** By the code of the error. */
const problems = {
  invalid_credentials: 'The e-mail address or the password is wrong.',
  invalid_request: 'The e-mail address or the password is not valid.',
  gave_up: 'It has taken too long.',
  unexpected_answer: 'The service did not answer as expected.',
  challenge_required:
    'Somebody has tried passwords of this account, and this page cannot prove that you are no program.',
}

/** What has gone wrong, for whoever reads the page. */
export function problemOf({ code, message, needsPassword, retryAfterMs }) {
  if (needsPassword)
    return 'Your place in the queue was lost while the page was away. Please enter your password again.'
  const what = problems[code] ?? message
  return retryAfterMs === undefined ? what : `${what} Please try again in ${inWords(Math.ceil(retryAfterMs / 1_000))}.`
}

/** By it, support finds what became of a login. */
export function supportCode({ requestId }) {
  return requestId === undefined ? '' : `Support code: ${requestId}`
}

function ahead(position) {
  if (position === undefined) return ''
  return `${position} ${position === 1 ? 'person is' : 'people are'} ahead of you.`
}

export function inWords(seconds) {
  if (seconds <= 1) return 'a moment'
  return seconds < 90 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`
}

export function inClock(seconds) {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
