// Workers and gateways die, are replaced, disagree about the time, and get other keys.
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, respondAsync } from '@spillway/infra/harness/api-client'
import { clockOff } from '@spillway/infra/harness/clocks'
import { newSealKey, newSigningKey } from '@spillway/infra/start/secrets'
import { startLoop } from '../../load/open-loop.ts'
import { countBy, type Scenario, type System, seconds, type Trial } from '../harness.ts'

const workerKilled: Scenario = {
  name: 'worker-killed',
  promise: 'Workers are killed (SIGKILL) under load: no login fails, and another worker does what they held.',
  async try(trial) {
    // Slow hashes, so that a worker always holds some, and few: one worker can do them all.
    const system = await trial.spillway({ hash: 'wait-300', workerEnv: { WORKER_CONCURRENCY: '16' } })
    await trial.whilePeopleCome(system, 40, async () => {
      for (let time = 0; time < 3; time++) {
        system.workers.at(-1)?.signal('SIGKILL')
        await sleep(3_000)
        await system.worker()
      }
    })
    const takenOver = await system.workersTell('spillway_jobs_stalled_total')
    trial.expectFigure(takenOver > 0, `${takenOver} jobs taken over`)
    trial.expectAllAnswered()
  },
}

const workersGone: Scenario = {
  name: 'workers-gone',
  promise:
    'All workers are killed: gateways notice, give tickets for 5 s later or 503 with Retry-After, and all is done when workers are back.',
  async try(trial) {
    const system = await trial.spillway({ hash: 'wait-100' })
    await trial.whilePeopleCome(system, 30, async () => {
      const killedAtMs = performance.now()
      for (const worker of system.workers) worker.signal('SIGKILL')
      await system.knowsWorkers(0)
      trial.figure(`noticed after ${seconds(performance.now() - killedAtMs)} s`)
      const logIn = (_: unknown, n: number) => system.ask(n, '/v1/login', { body: system.login(n) })
      const answers = await Promise.all(Array.from({ length: 20 }, logIn))
      trial.figure(`then ${countBy(answers.map(({ status, body }) => `${status} ${body.code ?? ''}`.trim()))}`)
      const isHonest = answers.every(({ status, headers: { 'retry-after': after } }) =>
        status === 202 ? after === '5' : status === 503 && after !== undefined,
      )
      trial.expect(isHonest, 'without workers an answer is neither a ticket for 5 s later nor 503 with Retry-After')
      await sleep(3_000)
      await Promise.all([system.worker(), system.worker()])
    })
  },
}

const gatewayKilled: Scenario = {
  name: 'gateway-killed',
  promise: 'One of two gateways is killed (SIGKILL): whoever tries again at the other one gets in.',
  async try(trial) {
    const system = await trial.spillway({ hash: 'wait-100' })
    const people = { tries: 3 }
    await trial.whilePeopleCome(system, 40, async () => system.gateways[1]?.signal('SIGKILL'), { people })
    const met = trial.visits.filter(({ failures }) => failures > 0).length
    trial.expectFigure(met > 0, `${met} met a failure`)
    trial.expectAllAnswered()
  },
}

/** Two of each, and a balancer that follows readiness. Draining takes longer than it needs to notice. */
async function behindBalancer(trial: Trial, env: NodeJS.ProcessEnv = {}) {
  const gatewayEnv = { DRAIN_MS: '2000', ...env }
  const system = await trial.spillway({ hash: 'wait-100', gatewayEnv, workerEnv: env })
  const balancer = await trial.balancer(system)
  await balancer.knows(...system.gateways)
  /** Replaces all members, one after the other: workers first. */
  async function replaceAll(changed: NodeJS.ProcessEnv = {}): Promise<void> {
    const isRunning = ({ exit }: { exit: unknown }) => exit === undefined
    for (const worker of system.workers.filter(isRunning)) {
      await system.worker({ env: changed })
      trial.expect((await worker.stop()).code === 0, 'a worker did not end with 0')
    }
    for (const gateway of system.gateways.filter(isRunning)) {
      await balancer.knows(await system.gateway({ env: changed }))
      trial.expect((await gateway.stop()).code === 0, 'a gateway did not end with 0')
    }
  }
  return { system, url: balancer.url, replaceAll }
}

const rollingUpdate: Scenario = {
  name: 'rolling-update',
  promise: 'Every gateway and worker is replaced under load (SIGTERM), on kept and new connections: no request fails.',
  async try(trial) {
    const { system, url, replaceAll } = await behindBalancer(trial)
    const people = {
      urls: [url],
      // Every second on a connection of its own, every third with a ticket that any gateway redeems.
      headers: (number: number): Record<string, string> => ({
        ...(number % 2 === 0 ? { connection: 'close' } : {}),
        ...(number % 3 === 0 ? respondAsync.headers : {}),
      }),
    }
    await trial.whilePeopleCome(system, 20, () => replaceAll(), { people })
    trial.expectAllAnswered()
  },
}

/** In place of fifteen minutes. */
const TOKEN_TTL_S = 6
const TOKENS_USED_PER_SECOND = 30

const keysRotated: Scenario = {
  name: 'keys-rotated',
  promise:
    'The keys that seal and the keys that sign are rotated under load, to keys of another type: no login fails, no token is refused.',
  async try(trial) {
    const [sealed, signed] = [
      [newSealKey('old'), newSealKey('new')],
      [newSigningKey('old', 'EdDSA'), newSigningKey('new', 'ES256')],
    ]
    const keys = (...order: number[]) => ({
      SPILLWAY_SEAL_KEYS: order.map((n) => sealed[n]).join(),
      SPILLWAY_JWT_KEYS: order.map((n) => signed[n]).join(),
    })
    const { system, url, replaceAll } = await behindBalancer(trial, {
      ACCESS_TOKEN_TTL_S: String(TOKEN_TTL_S),
      ...keys(0),
    })
    const used: string[] = []
    const tokens = useTokens(system, url, used)
    await trial.whilePeopleCome(
      system,
      20,
      async () => {
        // Known everywhere, then used, then alone, once all that the old key made has ended.
        await replaceAll(keys(0, 1))
        await replaceAll(keys(1, 0))
        await sleep(TOKEN_TTL_S * 1_000)
        await replaceAll(keys(1))
      },
      { people: { urls: [url] } },
    )
    await tokens.stop()
    trial.figure(`tokens used: ${countBy(used)}`)
    trial.expect(
      used.every((end) => end.startsWith('200')),
      'a token was refused',
    )
    trial.expect(new Set(used).size === 2, 'not both keys signed, so nothing was tried')
    trial.expectAllAnswered()
  },
}

/** Uses a token several times while it is good, and then the next one. Notes status and key. */
function useTokens(system: System, url: string, used: string[]) {
  let token: { text: string; key: string; untilMs: number } | undefined
  let number = 0
  return startLoop(TOKENS_USED_PER_SECOND, async () => {
    if (token === undefined || performance.now() > token.untilMs) {
      token = undefined
      const untilMs = performance.now() + (TOKEN_TTL_S * 1_000) / 2
      const text = (await ask(url, '/v1/login', { body: system.login(number++) })).body.accessToken
      if (text === undefined) return
      const { kid } = JSON.parse(Buffer.from(text.split('.')[0] ?? '', 'base64url').toString())
      token = { text, key: String(kid), untilMs }
    }
    const { text, key } = token
    const { status } = await ask(url, '/v1/me', { headers: { authorization: `Bearer ${text}` } })
    used.push(`${status} by ${key}`)
  })
}

const SHIFT_MS = 30_000

const clocksApart: Scenario = {
  name: 'clocks-apart',
  promise:
    "Two gateways' clocks are 30 s ahead of and behind the workers': no login fails for it, and tickets and tokens of one are good at the other.",
  async try(trial) {
    // Shorter than the difference of the clocks: a deadline by the wrong clock is over or endless.
    const system = await trial.spillway({ gateways: 0, workers: 1, gatewayEnv: { TICKET_TTL_MS: '11000' } })
    for (const shiftMs of [SHIFT_MS, -SHIFT_MS]) await system.gateway({ env: clockOff(shiftMs) })
    await system.knowsWorkers(1)
    await trial.whilePeopleCome(system, 40, () => Promise.resolve(), { afterMs: 3_000 })
    trial.expectAllAnswered()
    const issuedAtS: number[] = []
    for (const [here, there] of [
      [0, 1],
      [1, 0],
    ] as const) {
      const { body } = await system.ask(here, '/v1/login', { body: system.login(0), ...respondAsync })
      const redeemed = await system.ask(there, '/v1/tickets/redeem', { body: { ticket: body.ticket } })
      const { accessToken = '', refreshToken } = redeemed.body
      const me = await system.ask(here, '/v1/me', { headers: { authorization: `Bearer ${accessToken}` } })
      const refreshed = await system.ask(here, '/v1/token/refresh', { body: { refreshToken } })
      const statuses = [redeemed, me, refreshed].map(({ status }) => status)
      trial.expect(
        statuses.every((status) => status === 200),
        `the other gateway answered ${statuses.join(', ')}`,
      )
      const claims = Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString()
      issuedAtS.push(Number(JSON.parse(claims || '{}').iat))
    }
    const [one = 0, other = 0] = issuedAtS
    const apartS = Math.abs(one - other)
    trial.expectFigure(
      Math.abs(apartS - (2 * SHIFT_MS) / 1_000) <= 5,
      `the tokens say that clocks are ${apartS} s apart`,
    )
  },
}

export const processScenarios: readonly Scenario[] = [
  workerKilled,
  workersGone,
  gatewayKilled,
  rollingUpdate,
  clocksApart,
  keysRotated,
]
