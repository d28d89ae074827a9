// A page: type-checked with what browsers have, and nothing of Node.
import { login, type Progress, resume, SpillwayError, type Tokens } from '@spillway/client/browser'

const aborter = new AbortController()
const options = {
  baseUrl: 'https://auth.example.test',
  signal: aborter.signal,
  storage: sessionStorage,
  onProgress({ state, position, etaS }: Progress) {
    document.title = state === 'queued' ? `${position ?? '?'} ahead, ${etaS ?? '?'} s` : state
  },
}
try {
  const tokens: Tokens = (await resume<Tokens>(options)) ?? (await login({ ...options, email: 'e', password: 'p' }))
  document.body.textContent = tokens.accessToken
} catch (error) {
  if (error instanceof SpillwayError && error.needsPassword) document.body.textContent = error.code
}
