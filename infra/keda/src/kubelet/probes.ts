// The probes of a container: started once the startup probe has passed, then ready or not, and alive or not.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Container, Probe } from './pod.ts'

export interface ProbeListener {
  onReady(ready: boolean): void
  /** Its container is to be started again. */
  onDead(why: string): void
}

/** Kubernetes' own defaults. */
const PERIOD_S = 10
const TIMEOUT_S = 1
const FAILURES = 3

/** Probes a container until the signal is aborted. */
export async function probe(
  container: Container,
  podIp: string,
  listener: ProbeListener,
  signal: AbortSignal,
): Promise<void> {
  const passes = (one: Probe): Promise<boolean> => get(container, podIp, one)

  async function repeat(one: Probe, onResult: (passed: boolean, failures: number) => boolean): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      const passed = await passes(one)
      failures = passed ? 0 : failures + 1
      if (signal.aborted || onResult(passed, failures)) return
      await sleep((one.periodSeconds ?? PERIOD_S) * 1_000, undefined, { signal }).catch(() => undefined)
    }
  }

  const { startupProbe, readinessProbe, livenessProbe } = container
  if (startupProbe) {
    let started = false
    await repeat(startupProbe, (passed, failures) => {
      started = passed
      return passed || failures >= (startupProbe.failureThreshold ?? FAILURES)
    })
    if (!started) return signal.aborted ? undefined : listener.onDead('it never started')
  }
  await Promise.all([
    readinessProbe
      ? repeat(readinessProbe, (passed, failures) => {
          if (passed || failures >= (readinessProbe.failureThreshold ?? FAILURES)) listener.onReady(passed)
          return false
        })
      : listener.onReady(!signal.aborted),
    livenessProbe &&
      repeat(livenessProbe, (_passed, failures) => {
        const dead = failures >= (livenessProbe.failureThreshold ?? FAILURES)
        if (dead) listener.onDead('its liveness probe failed')
        return dead
      }),
  ])
}

async function get(
  { ports = [] }: Container,
  podIp: string,
  { httpGet, timeoutSeconds = TIMEOUT_S }: Probe,
): Promise<boolean> {
  if (httpGet === undefined) return true
  const named = ports.find(({ name }) => name === httpGet.port)?.containerPort
  try {
    const url = `http://${podIp}:${named ?? httpGet.port}${httpGet.path}`
    const { status } = await fetch(url, { signal: AbortSignal.timeout(timeoutSeconds * 1_000) })
    return status >= 200 && status < 400
  } catch {
    return false
  }
}
