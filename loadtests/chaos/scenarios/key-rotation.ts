// Keys that sign access tokens are replaced by keys of other types, as the gateway's README says.
import { createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '@spillway/infra/rig/api-client'
import { startLoop } from '@spillway/infra/rig/open-loop'
import { newSigningKey } from '@spillway/infra/start/secrets'
import { countBy, Findings } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { startBalancer } from '../stage/balancer.ts'
import { onOwnRedis, type System } from '../stage/stage.ts'

const PER_SECOND = 100
/** One of so many is a login, the others use a token that is good. */
const EVERY_NTH_LOGIN = 8
/** In place of fifteen minutes, and of five for which a cache keeps the keys. */
const TOKEN_TTL_S = 6
const KEYS_FOR_MS = 1_000
const gatewayEnv = { ACCESS_TOKEN_TTL_S: String(TOKEN_TTL_S), DRAIN_MS: '1500' }

export const keyRotation: Scenario = {
  name: 'key-rotation',
  promise:
    'The signing key of two gateways is rotated under load from Ed25519 to P-256 and on to RSA: no token is refused, by gateways or by a service that caches the keys.',
  run: onOwnRedis({ credential: 'token', gateways: 0, workers: 1, gatewayEnv }, rotate),
}

async function rotate(system: System): Promise<Findings> {
  const findings = new Findings()
  const [ed, p256, rsa] = [newSigningKey('ed', 'EdDSA'), newSigningKey('p256', 'ES256'), newSigningKey('rsa', 'RS256')]
  const steps = [[ed], [ed, p256], [p256, ed], [p256], [p256, rsa], [rsa, p256], [rsa]]
  const start = (keys: string[]) => system.gateway({ env: { SPILLWAY_JWT_KEYS: keys.join() } })
  for (let n = 0; n < 2; n++) await start([ed])
  await system.knowsWorkers(1)
  const balancer = await startBalancer(system)
  await balancer.knows(...system.gateways)
  const service = createService(balancer.url)
  const tokens: { token: string; untilMs: number }[] = []
  const failures: string[] = []
  const algorithms: string[] = []
  const fail = (what: string): void => void failures.push(what)

  async function logIn(nth: number): Promise<void> {
    const { status, body } = await ask(balancer.url, '/v1/login', { body: system.login(nth) })
    if (status !== 200) {
      if (status === 202 || status === 503) findings.refused++
      else fail(`a login was answered ${status}`)
      return
    }
    const token = String(body.accessToken)
    const { alg = '' } = partOf(token, 0)
    algorithms.push(alg)
    tokens.push({ token, untilMs: Date.now() + (TOKEN_TTL_S - 2) * 1_000 })
    findings.succeeded++
  }

  async function useToken(nth: number): Promise<void> {
    while (tokens[0] !== undefined && tokens[0].untilMs < Date.now()) tokens.shift()
    const token = tokens[nth % tokens.length]?.token
    if (token === undefined) return logIn(nth)
    if (!(await service.takes(token))) {
      refused('the service', token)
      return
    }
    const { status, body } = await ask(balancer.url, '/v1/me', { headers: { authorization: `Bearer ${token}` } })
    if (status === 200) findings.succeeded++
    else if (status === 503) findings.refused++
    else if (status === 401) refused(`a gateway (${body.code})`, token)
    else fail(`a token was answered ${status}`)
  }

  /** A starved machine may answer after the end of a token: then a refusal is right. */
  function refused(by: string, token: string): void {
    const { kid } = partOf(token, 0)
    const { iat = 0, exp = 0 } = partOf(token, 1)
    const nowS = Date.now() / 1_000
    if (nowS < exp) fail(`${by} refused a token of key ${kid} after ${(nowS - iat).toFixed(1)} s`)
    else {
      findings.refused++
      late++
    }
  }

  let late = 0
  let number = 0
  const loop = startLoop({
    rateAt: () => PER_SECOND,
    async send() {
      const nth = number++
      findings.requests++
      await (nth % EVERY_NTH_LOGIN === 0 ? logIn(nth) : useToken(nth)).catch((error: unknown) => fail(String(error)))
    },
  })
  try {
    for (const keys of steps.slice(1)) {
      // An old key goes when its last token has expired. A new key signs when every cache has it.
      await sleep(keys.length === 1 ? (TOKEN_TTL_S + 1) * 1_000 : 2 * KEYS_FOR_MS)
      for (const old of system.gateways.filter(({ exit }) => exit === undefined)) {
        await balancer.knows(await start(keys))
        await old.stop()
      }
    }
    await sleep(2_000)
  } finally {
    await loop.stop()
    await balancer.close()
  }
  findings.notes.push(`tokens signed: ${countBy(algorithms)}`)
  if (late > 0) findings.notes.push(`${late} tokens were answered after their end, ${TOKEN_TTL_S} s`)
  findings.expectAllAnswered(failures)
  const kinds = new Set(algorithms)
  findings.expect(kinds.size === 3, `only ${[...kinds]} signed, so no rotation was tried`)
  return findings
}

interface TokenPart {
  alg?: string
  kid?: string
  iat?: number
  exp?: number
}

/** The header of a token (0), or its claims (1). */
function partOf(token: string, part: 0 | 1): TokenPart {
  return JSON.parse(Buffer.from(token.split('.')[part] ?? '', 'base64url').toString())
}

type PublicKey = JsonWebKey & { kid: string }

/** A service that verifies tokens by the published keys, which it caches. */
function createService(url: string) {
  let fetched = { atMs: 0, keys: new Map<string, KeyObject>() }
  async function keys() {
    if (Date.now() - fetched.atMs > KEYS_FOR_MS) {
      const { body } = await ask(url, '/.well-known/jwks.json')
      const { keys }: { keys: PublicKey[] } = JSON.parse(JSON.stringify(body))
      const named = keys.map((key): [string, KeyObject] => [key.kid, createPublicKey({ key, format: 'jwk' })])
      fetched = { atMs: Date.now(), keys: new Map(named) }
    }
    return fetched.keys
  }
  return {
    async takes(token: string): Promise<boolean> {
      const [head = '', claims = '', signature = ''] = token.split('.')
      const { kid = '' } = partOf(token, 0)
      const key = (await keys()).get(kid)
      const digest = key?.asymmetricKeyType === 'ed25519' ? null : 'sha256'
      const data = Buffer.from(`${head}.${claims}`)
      if (key === undefined) return false
      return verify(digest, data, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))
    },
  }
}
