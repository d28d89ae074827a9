/** GET /healthz and GET /readyz. Liveness uses no dependency; readiness checks each dependency of a login. */
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { databaseProblem } from '@spillway/prisma'
import type { RoutePlugin } from '../operations/deps.js'

/** For how long an answer of the database is taken for the next probes too, in milliseconds: probes are not limited. */
const DATABASE_ANSWER_MS = 250

const Check = { type: 'string', enum: ['ok', 'failing'] } as const
const Liveness = {
  title: 'Liveness',
  description: 'The process runs',
  type: 'object',
  properties: { status: { const: 'ok' } },
  required: ['status'],
  additionalProperties: false,
} as const
const Readiness = {
  title: 'Readiness',
  description: 'Each thing that a login needs',
  type: 'object',
  properties: {
    status: Check,
    checks: {
      type: 'object',
      properties: { database: Check, queue: Check },
      required: ['database', 'queue'],
      additionalProperties: false,
    },
    /** For information only: a gateway without workers is ready, because it can issue tickets. */
    workers: { type: 'integer' },
    /** Only where there are several Redis servers: a login needs one of them. Their addresses are in the metrics. */
    redis: {
      type: 'object',
      properties: { usable: { type: 'integer' }, of: { type: 'integer' } },
      required: ['usable', 'of'],
      additionalProperties: false,
    },
    /** For information only, and absent where no Redis evicts: counters of guesses and marks of used tickets can be lost. */
    eviction: { type: 'string', enum: ['possible', 'unknown'] },
  },
  required: ['status', 'checks', 'workers'],
  additionalProperties: false,
} as const

export const healthRoutes: RoutePlugin = async (app, { database, passwords, isDraining }) => {
  const unanswered = new ThrottledWarning(app.log, 'the database cannot be used')
  const databaseAnswers = shareAnswer(
    () =>
      database.$queryRaw`SELECT 1`.then(
        () => {
          unanswered.recovered()
          return true
        },
        (error: unknown) => {
          unanswered.warn(new Error(databaseProblem(error)))
          return false
        },
      ),
    DATABASE_ANSWER_MS,
  )

  // Probes arrive every few seconds: only warnings about them are logged.
  const logLevel = 'warn'
  const config = { priority: 'always' } as const

  app.get(
    '/healthz',
    {
      logLevel,
      config,
      schema: { operationId: 'getLiveness', tags: ['Probes'], summary: 'Liveness', response: { 200: Liveness } },
    },
    async () => ({
      status: 'ok' as const,
    }),
  )

  app.get(
    '/readyz',
    {
      logLevel,
      config,
      schema: {
        operationId: 'getReadiness',
        tags: ['Probes'],
        summary: 'Readiness',
        response: { 200: Readiness, 503: Readiness },
      },
    },
    async (_request, reply) => {
      const answers = await databaseAnswers()
      const checks = { database: word(answers), queue: word(passwords.isReady()) }
      const ready = answers && passwords.isReady() && !isDraining()
      const { redis } = passwords
      const usable = redis.filter(({ isUsable }) => isUsable()).length
      const evictions = redis.map((each) => each.eviction())
      const eviction = (['possible', 'unknown'] as const).find((state) => evictions.includes(state))
      return reply.code(ready ? 200 : 503).send({
        status: word(ready),
        checks,
        workers: passwords.load().workers,
        ...(redis.length === 1 ? {} : { redis: { usable, of: redis.length } }),
        ...(eviction === undefined ? {} : { eviction }),
      })
    },
  )
}

function word(ok: boolean): 'ok' | 'failing' {
  return ok ? 'ok' : 'failing'
}

/** Returns a function that gives the answer in progress, or one that is younger than `forMs`, in milliseconds. `ask` never rejects. */
export function shareAnswer<T>(
  ask: () => Promise<T>,
  forMs: number,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let shared: { answer: Promise<T>; untilMs: number } | undefined
  return () => {
    if (shared !== undefined && now() < shared.untilMs) return shared.answer
    const asking = { answer: ask(), untilMs: Number.POSITIVE_INFINITY }
    shared = asking
    void asking.answer.then(() => {
      asking.untilMs = now() + forMs
    })
    return asking.answer
  }
}
