// The old system that workers ask at first logins is slow, down and lying. Its accounts get a defined answer, it lets nobody in, and all
// other logins continue.
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '@spillway/infra/rig/api-client'
import { type Findings, type Scenario, underFault } from '../scenario.ts'
import { onOwnRedis, type System } from '../stage/stage.ts'

const PER_SECOND = 20
const MOVING_PER_SECOND = 10
const PHASE_MS = 3_000
/** For so long after its last failure the old system is not asked: see worker/src/consumer/old-system.ts. */
const CIRCUIT_OPEN_MS = 11_000
const TIMEOUT_MS = 1_000

const faults = {
  slow: () => undefined,
  down: (response: ServerResponse) => void response.destroy(),
  lying: (response: ServerResponse) => void response.end('<html>{"verified": true}</html>'),
} as const
type Fault = keyof typeof faults

interface OldSystem {
  url: string
  fault: Fault | undefined
  close(): void
}

/** Says yes to everyone, unless it is broken. */
async function startOldSystem(): Promise<OldSystem> {
  const system: { fault: Fault | undefined } = { fault: undefined }
  const server: Server = createServer((request, response) => {
    request.resume()
    if (system.fault === undefined) response.end('{"verified": true}')
    else faults[system.fault](response)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return Object.assign(system, { url: `http://127.0.0.1:${port}/verify`, close })
}

/** First logins of accounts that only the old system has. Returns the statuses of the answers. */
async function firstLogins(system: System, name: string): Promise<number[]> {
  const { urls } = system.visitor()
  const answers: Promise<number>[] = []
  for (let n = 0; n < (MOVING_PER_SECOND * PHASE_MS) / 1_000; n++) {
    const body = { email: `${name}-${n}@old.example.test`, password: 'a pass phrase of before' }
    answers.push(ask(urls[n % urls.length] ?? '', '/v1/login', { body }).then(({ status = 0 }) => status))
    await sleep(1_000 / MOVING_PER_SECOND)
  }
  return await Promise.all(answers)
}

async function breakAndMend(system: System, old: OldSystem, findings: Findings): Promise<void> {
  for (const fault of ['slow', 'down', 'lying'] as const) {
    old.fault = fault
    const statuses = await firstLogins(system, fault)
    findings.notes.push(`${fault}: ${count(statuses)}`)
    findings.expect(!statuses.includes(200), `an account was let in while the old system was ${fault}`)
    findings.expect(
      statuses.every((status) => [401, 202, 429, 503].includes(status)),
      `answers while the old system was ${fault} were ${count(statuses)}`,
    )
  }
  old.fault = undefined
  await sleep(CIRCUIT_OPEN_MS)
  // One question closes the circuit again.
  await firstLogins(system, 'probe')
  const statuses = await firstLogins(system, 'mended')
  findings.notes.push(`mended: ${count(statuses)}`)
  findings.expect(statuses.includes(200), 'no account of the old system got in after it was mended')
}

function count(statuses: readonly number[]): string {
  const kinds = new Map<number, number>()
  for (const status of statuses) kinds.set(status, (kinds.get(status) ?? 0) + 1)
  return [...kinds].map(([status, times]) => `${times} × ${status}`).join(', ')
}

export const oldSystem: Scenario = {
  name: 'old-system',
  promise:
    'The old system is slow, down and lying: nobody is let in by it, all others log in, and its accounts when it is back.',
  async run(stage) {
    const old = await startOldSystem()
    const workerEnv = {
      LEGACY_VERIFY_URL: old.url,
      LEGACY_VERIFY_KEY: Buffer.alloc(32, 7).toString('base64'),
      LEGACY_VERIFY_TIMEOUT_MS: String(TIMEOUT_MS),
    }
    const options = { credential: 'wait-100', gatewayEnv: { LEGACY_VERIFY: 'true' }, workerEnv } as const
    try {
      return await onOwnRedis(options, (system) =>
        underFault(system, { perSecond: PER_SECOND, fault: (findings) => breakAndMend(system, old, findings) }),
      )(stage)
    } finally {
      old.close()
    }
  },
}
