// A login succeeds: a new account is registered and logged in to, by tickets where the workers are
// busy.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

const account = { email: `helm-test-${randomUUID()}@example.com`, password: randomUUID() }

async function post(path, body) {
  const response = await fetch(new URL(path, process.env.GATEWAY_URL), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: await response.json() }
}

async function finished(path, body) {
  let answer = await post(path, body)
  while (answer.status === 202) {
    await sleep(answer.body.retryAfter * 1_000)
    answer = await post('/v1/tickets/redeem', { ticket: answer.body.ticket })
  }
  return answer
}

for (const [path, expected] of [
  ['/v1/users', 201],
  ['/v1/login', 200],
]) {
  const { status, body } = await finished(path, account)
  if (status !== expected) throw new Error(`${path} answered ${status} instead of ${expected}: ${body.code}`)
  console.log(`${path} answered ${status}`)
}
