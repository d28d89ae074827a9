// Whether the times of a gateway's answers tell which addresses have an account, and of which kind: the statistics by known values, the
// questions to a real gateway, and the comparison itself.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { createApiClient, readMetric } from '@spillway/infra/rig/api-client'
import { createNamespace } from '@spillway/infra/rig/namespace'
import { openSpillway } from '@spillway/infra/rig/spillway'
import { describe, type TestContext, test } from 'vitest'
import {
  askInTurn,
  broken,
  compareAll,
  isBlind,
  kolmogorovSmirnov,
  kolmogorovTail,
  type Sample,
  table,
} from '../oracle/compare.ts'
import {
  challengingSettings,
  type Kind,
  openQuestions,
  type Question,
  settings,
  startMailSink,
} from '../oracle/questions.ts'

/** Numbers from 0 to 1, the same each time (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const times = (count: number, next: () => number, shift = 0) =>
  Array.from({ length: count }, () => 10 + shift + next() + next() + next())

describe('Kolmogorov-Smirnov', () => {
  test('the tail agrees with the tables', () => {
    // The critical values of 10, 5, 1 and 0.1 %, and the value at 1.
    for (const [x, p] of [
      [1.2238, 0.1],
      [1.3581, 0.05],
      [1.6276, 0.01],
      [1.9495, 0.001],
      [1, 0.26999967],
    ] as const)
      assert.ok(Math.abs(kolmogorovTail(x) / p - 1) < 1e-3, `${x}: ${kolmogorovTail(x)}`)
    assert.equal(kolmogorovTail(0), 1)
  })

  test('the distance is the greatest one, whatever the lengths, and ties count as one step', () => {
    const distance = (one: number[], other: number[]) => kolmogorovSmirnov(one, other).distance.toFixed(9)
    assert.equal(distance([1, 2, 3, 4], [3, 4, 5, 6]), '0.500000000')
    assert.equal(distance([1, 1, 2], [1, 2, 2]), '0.333333333')
    assert.equal(distance([5, 1, 3], [3, 5, 1]), '0.000000000')
    assert.equal(distance([1, 2], [3, 4, 5, 6, 7]), '1.000000000')
    assert.equal(distance([1, 4], [2, 3, 5, 6]), '0.500000000')
  })

  test('of samples of one distribution, one in twenty is below 5 %; a small shift is far below', () => {
    const next = numbers(17)
    const below = Array.from({ length: 400 }, () => kolmogorovSmirnov(times(500, next), times(500, next)).p < 0.05)
    const share = below.filter(Boolean).length / below.length
    assert.ok(share > 0.02 && share < 0.08, `${share}`)
    assert.ok(kolmogorovSmirnov(times(1_000, next), times(1_000, next, 0.2)).p < 1e-6)
  })

  test('a slow tail is seen, where the medians are the same', () => {
    const next = numbers(4)
    const tailed = times(1_000, next).map((ms, n) => (n % 8 === 0 ? ms + 5 : ms))
    assert.ok(kolmogorovSmirnov(times(1_000, next), tailed).p < 1e-4)
  })
})

describe('the comparison', () => {
  const kind = (name: string, isPromised = true): Kind => ({ name, isPromised, ask: () => assert.fail() })
  const next = numbers(1)
  const sample = (question: Question, place: number, shift: number): Sample => ({
    question,
    kind: question.kinds[place] ?? assert.fail(),
    timesMs: times(800, next, shift),
  })
  const promised = { name: 'promised', status: 401, kinds: [kind('one'), kind('two'), kind('slow')] }
  const known = { name: 'known', status: 401, kinds: [kind('one'), kind('other', false)] }
  const samples = [
    ...[0, 0, 1].map((shift, place) => sample(promised, place, shift)),
    ...[0, 1].map((shift, place) => sample(known, place, shift)),
  ]

  test('every two of a question are compared, and what differs breaks a promise where there is one', () => {
    const pairs = compareAll(samples)
    assert.deepEqual(
      pairs.map(({ kinds, isToldApart }) => [...kinds, isToldApart]),
      [
        ['one', 'two', false],
        ['one', 'slow', true],
        ['two', 'slow', true],
        ['one', 'other', true],
      ],
    )
    assert.deepEqual(
      broken(pairs).map(({ kinds }) => kinds),
      [
        ['one', 'slow'],
        ['two', 'slow'],
      ],
    )
    assert.match(
      table(pairs),
      /^\| promised .*one \/ slow .*800 \/ 800 .*11\.\d\d \/ 12\.\d\d .*0\.9\d .*< 0\.001 \| YES +\|$/m,
    )
    assert.match(table(pairs), /^\| known .*\| yes, as SECURITY says \|$/m)
  })

  test('a run that does not see what is known to differ says nothing', () => {
    assert.equal(isBlind(compareAll(samples)), false)
    const [one, , , known] = compareAll(samples)
    assert.ok(one && known)
    assert.equal(isBlind([one, { ...known, isToldApart: false }]), true)
  })

  test('the more is compared, the more it takes', () => {
    const one = compareAll(samples.slice(0, 2))[0]
    const many = compareAll(samples)[0]
    assert.ok(one && many && one.p > 0 && one.p < 1)
    assert.equal(many.p, Math.min(1, 4 * one.p))
  })
})

describe('asking', () => {
  const answering = (statusOf: (n: number) => number): Question => {
    const ask = async (n: number) => ({ ...(await nobody.get('/')), status: statusOf(n), tookMs: n })
    return { name: 'asked', status: 204, kinds: ['one', 'other'].map((name) => ({ name, isPromised: true, ask })) }
  }
  // Listens nowhere: each answer is that there was none.
  const nobody = createApiClient('http://127.0.0.1:1')
  const asked = (statusOf: (n: number) => number) =>
    askInTurn([answering(statusOf)], { samples: 200, stop: () => false })

  test('each kind is asked about as often, by chance, about each address of it once; the first answers do not count', async () => {
    const samples = await asked(() => 204)
    assert.equal(samples.length, 2)
    for (const { timesMs } of samples) {
      assert.ok(timesMs.length > 120 && timesMs.length < 280, `${timesMs.length}`)
      assert.equal(new Set(timesMs).size, timesMs.length)
      assert.ok(Math.min(...timesMs) > 0)
    }
    assert.equal(
      samples.reduce((sum, { timesMs }) => sum + timesMs.length, 0),
      400,
    )
  })

  test('a few answers of another status are left out; more of them end it with what they were', async () => {
    const samples = await asked((n) => (n === 100 ? 202 : 204))
    for (const { timesMs } of samples) assert.ok(!timesMs.includes(100))
    await assert.rejects(
      asked((n) => (n % 10 === 0 ? 503 : 204)),
      /^UserError: asked \((one|other)\) was answered 503 and not 204/,
    )
  })
})

/** Answers for each kind, about. SPILLWAY_SAMPLES=1000 sees differences that are smaller, in six minutes on an idle machine. */
const SAMPLES = Number(process.env.SPILLWAY_SAMPLES ?? 100)
/** Many times what an idle machine takes. */
const WITHIN_MS = SAMPLES * 6_000
/** So that hashes take a few milliseconds, which is much beside what is compared. */
const CHEAP = { ARGON2_MEMORY_KIB: '1024', ARGON2_TIME: '1', WORKER_CONCURRENCY: '1' }

/** Two gateways with mail, one of which asks for a challenge, and a worker. */
async function openAsked(t: TestContext, accounts: number, workerEnv: NodeJS.ProcessEnv) {
  const namespace = await createNamespace()
  const mails = await startMailSink()
  const spillway = openSpillway({ ...namespace, gatewayEnv: mails.env, workerEnv })
  t.onTestFinished(async () => {
    const badEnds = await spillway.close()
    await mails.close()
    await namespace.close()
    assert.deepEqual(badEnds, [])
  })
  const [{ url }, challenging, worker] = await Promise.all([
    spillway.gateway({ env: settings }),
    spillway.gateway({ env: challengingSettings }),
    spillway.worker(),
  ])
  await spillway.knowsWorkers()
  const asked = { databaseUrl: namespace.databaseUrl, url, challengingUrl: challenging.url, accounts }
  /** Tickets mean that the gateway knows no worker, or a slow one. */
  async function explain(): Promise<string> {
    const ready = await fetch(`${url}/readyz`).then((answer) => answer.text(), String)
    return `The gateway and its worker now: ${JSON.stringify({ ready, exit: worker.exit, logs: worker.logs.slice(-5) })}`
  }
  return { worker, explain, ...(await openQuestions(asked)) }
}

test('every question is answered by a real gateway with its one status, after the work of the hash that is stored', async (t) => {
  const { questions, worker, close } = await openAsked(t, 2, CHEAP)
  t.onTestFinished(close)
  for (const { name, status, kinds } of questions)
    for (const kind of kinds)
      for (const n of [0, 1]) assert.equal((await kind.ask(n)).status, status, `${name}, ${kind.name}`)
  const ofBcrypt = () => readMetric(worker.opsUrl, 'spillway_service_seconds_count', 'algorithm="bcrypt"')
  await until(async () => (await ofBcrypt()) === 2)
  const unsupported = () => readMetric(worker.opsUrl, 'spillway_jobs_total', 'outcome="unsupported_hash"')
  await until(async () => (await unsupported()) >= 8, { what: 'stored hashes that nothing verifies' })
})

test(
  'what SECURITY says to be alike cannot be told apart by time, where what is known to differ can',
  async (t) => {
    const { questions, close, explain } = await openAsked(t, SAMPLES, {})
    t.onTestFinished(close)
    const asked = askInTurn(questions, { samples: SAMPLES, stop: () => t.signal.aborted, explain })
    const pairs = compareAll(await asked)
    assert.deepEqual(broken(pairs), [], table(pairs))
    assert.equal(isBlind(pairs), false, `this says nothing: is the machine busy?\n${table(pairs)}`)
  },
  WITHIN_MS,
)
