// Test doubles of stored hashes: a worker of tests waits in place of hashing. Any password matches
// except "wrong".
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Hasher } from '@spillway/worker/hashing/index'

const GATE_EVERY_MS = 5

const doubles = [
  // At once.
  { pattern: /^\$spillway-token\$$/, work: async () => undefined },
  // After so many milliseconds.
  { pattern: /^\$spillway-wait\$(\d{1,5})\$$/, work: (/** @type {string} */ ms) => sleep(Number(ms)) },
  // While the file of this path (base64url) exists.
  {
    pattern: /^\$spillway-gate\$([\w-]+)\$$/,
    work: async (/** @type {string} */ path) => {
      while (existsSync(Buffer.from(path, 'base64url').toString())) await sleep(GATE_EVERY_MS)
    },
  },
]

/**
 * Loads a hasher that also takes doubles, each in a slot. Their time counts as processor time.
 *
 * @type {typeof Hasher.load}
 */
export async function loadWithDoubles(policy, options) {
  const hasher = await Hasher.load(policy, options)
  const { slots = 1 } = options
  const times = hasher.times.bind(hasher)
  /** @type {(() => void)[]} */
  const waiting = []
  let running = 0
  let pretendedMs = 0

  /** @param {() => Promise<unknown>} work */
  async function inSlot(work) {
    if (running >= slots) await new Promise((begin) => waiting.push(() => begin(undefined)))
    else running += 1
    const startedAt = performance.now()
    try {
      await work()
    } finally {
      pretendedMs += performance.now() - startedAt
      const next = waiting.shift()
      if (next === undefined) running -= 1
      else next()
    }
  }

  for (const each of new Set([hasher, hasher.ofOwner(undefined)])) {
    const { verify, isDue } = each
    Object.assign(each, {
      /** @type {typeof verify} */
      async verify(password, storedHash, signal) {
        const work = doubleOf(storedHash)
        if (work === undefined) return await verify.call(each, password, storedHash, signal)
        await inSlot(work)
        return [password].flat()[0] !== 'wrong'
      },
      /** @type {typeof isDue} */
      isDue: (storedHash, by, mode) => doubleOf(storedHash) === undefined && isDue.call(each, storedHash, by, mode),
    })
  }
  return Object.assign(hasher, {
    times() {
      const { wallMs, cpuMs } = times()
      return { wallMs: wallMs + pretendedMs, cpuMs: cpuMs + pretendedMs }
    },
  })
}

/** @param {string | null} storedHash */
function doubleOf(storedHash) {
  for (const { pattern, work } of doubles) {
    const match = pattern.exec(storedHash ?? '')
    if (match !== null) return () => work(match[1] ?? '')
  }
  return undefined
}
