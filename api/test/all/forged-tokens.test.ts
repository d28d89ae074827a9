// Ten thousand forged tokens of every kind, for keys of each type: no gateway takes one.
import assert from 'node:assert/strict'
import { newSigningKey } from '@spillway/infra/start/secrets'
import { decodeJwt } from 'jose'
import { test } from 'vitest'
import { algorithms } from '../../src/sessions/signing-keys.ts'
import { expect } from '../client.ts'
import { createForger, privateKeyOf } from '../forgeries.ts'
import { openSystem } from '../system.ts'

const FORGERIES = 10_000
/** Forgers at a time, for each gateway. Each is held for half a second by its refusals. */
const FORGERS = 4

test('of ten thousand forged tokens no gateway takes one', async () => {
  const system = await openSystem()
  await system.worker()
  let [tried, letIn] = [0, 0]
  const kinds = new Set<string>()

  /** Tries forged tokens of every kind for a key of one type, until a share of them was tried. */
  async function attack(alg: (typeof algorithms)[number]): Promise<void> {
    const signing = newSigningKey('key', alg)
    const beside = algorithms.filter((other) => other !== alg).map((other) => newSigningKey(other, other))
    const { api } = await system.gateway({ SPILLWAY_JWT_KEYS: [signing, ...beside].join() })
    const { accessToken } = await api.signedIn()
    const payload = decodeJwt(accessToken)
    let left = FORGERIES / algorithms.length
    const forge = async () => {
      while (left > 0) {
        const forger = createForger({
          ...{ key: privateKeyOf(signing), kid: 'key', alg, accessToken },
          payload: { ...payload, jti: crypto.randomUUID(), iat: Number(payload.iat) - left },
        })
        const forgeries = Object.entries(await forger.forgeries())
        left -= forgeries.length
        expect(200, await api.me(await forger.signed({})))
        const answers = await Promise.all(forgeries.map(([, token]) => api.me(token)))
        letIn += answers.filter(({ status }) => status !== 401).length
        for (const [kind] of forgeries) kinds.add(kind)
        tried += forgeries.length
      }
    }
    await Promise.all(Array.from({ length: FORGERS }, forge))
  }

  await Promise.all(algorithms.map(attack))
  console.log(`${tried} forged tokens of ${kinds.size} kinds: ${letIn} let in`)
  assert.ok(tried >= FORGERIES)
  assert.equal(letIn, 0)
}, 600_000)
