// The old system of first logins is silent, down, lying and slow. It lets nobody in whom it does
// not know, and all other logins continue.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { listening } from '@spillway/infra/processes/port'
import { type ApiAnswer, ask } from '@spillway/infra/rig/api-client'
import { countBy, type Findings } from '../findings.ts'
import { type Scenario, underFault } from '../scenario.ts'
import { onOwnRedis, type System } from '../stage/stage.ts'

const PER_SECOND = 20
const MOVING_PER_SECOND = 10
const PHASE_MS = 3_000
/** The old system is not asked for this time after a failure: worker/src/consumer/old-system.ts. */
const CIRCUIT_OPEN_MS = 11_000
const TIMEOUT_MS = 2_500
/** Within its time-out, and so late that eight a second would keep twelve hashing places busy. */
const LATE_MS = 1_500

const RIGHT = 'a pass phrase of before'
const answers = { true: '{"verified": true}', false: '{"verified": false}' }

/** How each fault answers, given the truth. */
const faults = {
  silent: () => undefined,
  down: (response: ServerResponse) => void response.destroy(),
  lying: (response: ServerResponse) => void response.end('<html>{"verified": true}</html>'),
  late: (response: ServerResponse, truth: string) => void setTimeout(() => response.end(truth), LATE_MS),
  none: (response: ServerResponse, truth: string) => void response.end(truth),
} as const

async function startOldSystem() {
  const old: { fault: keyof typeof faults } = { fault: 'none' }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    faults[old.fault](response, answers[`${body.includes(RIGHT)}`])
  })
  const url = `http://127.0.0.1:${await listening(server)}/verify`
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return Object.assign(old, { url, close })
}

/** First logins of accounts that only the old system has, of so many a second. */
async function firstLogins(system: System, name: string, password = RIGHT): Promise<ApiAnswer[]> {
  const { urls } = system.visitor()
  const sent: Promise<ApiAnswer>[] = []
  for (let n = 0; n < (MOVING_PER_SECOND * PHASE_MS) / 1_000; n++) {
    const body = { email: `${name}-${n}@old.example.test`, password }
    sent.push(ask(urls[n % urls.length] ?? '', '/v1/login', { body }))
    await sleep(1_000 / MOVING_PER_SECOND)
  }
  return await Promise.all(sent)
}

type OldSystem = Awaited<ReturnType<typeof startOldSystem>>

async function breakAndMend(system: System, old: OldSystem, findings: Findings): Promise<void> {
  function expect(name: string, answers: readonly ApiAnswer[], allowed: readonly number[]): void {
    const counts = countBy(answers.map(({ status }) => status))
    findings.notes.push(`${name}: ${counts}`)
    findings.expect(
      answers.every(({ status }) => allowed.includes(status)),
      `answers while the old system was ${name} were ${counts}`,
    )
  }
  async function mend(after: string): Promise<void> {
    old.fault = 'none'
    await sleep(CIRCUIT_OPEN_MS)
    // A question closes the circuit of its worker again.
    await ask(system.gateways[0]?.url ?? '', '/v1/login', {
      body: { email: `after-${after}@old.example.test`, password: RIGHT },
    })
  }

  // Without its verdict a login is told to come back, or has a ticket: it is no guess.
  for (const fault of ['silent', 'down', 'lying'] as const) {
    old.fault = fault
    expect(fault, await firstLogins(system, fault), [202, 503])
    await mend(fault)
  }
  old.fault = 'late'
  const [right, wrong] = await Promise.all([firstLogins(system, 'late'), firstLogins(system, 'stranger', 'a guess')])
  expect('late, right passwords', right, [200, 202, 503])
  expect('late, wrong passwords', wrong, [401, 202, 503])
  await mend('late')
  const mended = await firstLogins(system, 'mended')
  // Each worker has a circuit, which its own next question closes.
  expect('mended', mended, [200, 202, 503])
  findings.expect(
    mended.some(({ status }) => status === 200),
    'no account of the old system got in after it was mended',
  )
}

export const oldSystem: Scenario = {
  name: 'old-system',
  promise:
    'The old system is silent, down, lying and slow: nobody is let in by it or taken for guessing, all others log in without a ticket, and its accounts when it is back.',
  async run(stage) {
    const old = await startOldSystem()
    const workerEnv = {
      LEGACY_VERIFY_URL: old.url,
      LEGACY_VERIFY_KEY: Buffer.alloc(32, 7).toString('base64'),
      LEGACY_VERIFY_TIMEOUT_MS: String(TIMEOUT_MS),
    }
    const options = { credential: 'wait-100', gatewayEnv: { LEGACY_VERIFY: 'true' }, workerEnv } as const
    try {
      return await onOwnRedis(options, async (system) => {
        const fault = (findings: Findings) => breakAndMend(system, old, findings)
        const findings = await underFault(system, { perSecond: PER_SECOND, fault })
        findings.expectAllSucceeded()
        // A job that waits for the old system keeps no hashing place.
        findings.expect(findings.ticketed === 0, `${findings.ticketed} logins of accounts that are here had to wait`)
        return findings
      })(stage)
    } finally {
      await old.close()
    }
  },
}
