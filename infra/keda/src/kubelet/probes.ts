// The probes of a container, by the kubelet's rules: the others begin once the startup probe has passed.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Container, Probe } from './pod.ts'

export interface ProbeListener {
  onReady(ready: boolean): void
  /** The container did not start, or does not live: it is to be restarted. */
  onDead(): void
}

/** Kubernetes' own defaults. */
const defaults = { periodSeconds: 10, timeoutSeconds: 1, failureThreshold: 3 }

/** Probes a container until the signal is aborted. */
export async function probe(
  { ports = [], startupProbe, readinessProbe, livenessProbe }: Container,
  podIp: string,
  { onReady, onDead }: ProbeListener,
  signal: AbortSignal,
): Promise<void> {
  /** Repeats a probe until `onResult` returns true; `failed` once it has failed as often as its threshold says. */
  async function repeat(given: Probe, onResult: (passed: boolean, failed: boolean) => boolean): Promise<void> {
    const { periodSeconds, failureThreshold } = { ...defaults, ...given }
    for (let failures = 0; !signal.aborted; ) {
      const passed = await passes(given)
      failures = passed ? 0 : failures + 1
      if (signal.aborted || onResult(passed, failures >= failureThreshold)) return
      await sleep(periodSeconds * 1_000, undefined, { signal }).catch(() => undefined)
    }
  }

  async function passes(given: Probe): Promise<boolean> {
    const { httpGet, timeoutSeconds } = { ...defaults, ...given }
    if (httpGet === undefined) return true
    const port = ports.find(({ name }) => name === httpGet.port)?.containerPort ?? httpGet.port
    const answer = fetch(`http://${podIp}:${port}${httpGet.path}`, {
      signal: AbortSignal.timeout(timeoutSeconds * 1_000),
    })
    return await answer.then(
      ({ status }) => status >= 200 && status < 400,
      () => false,
    )
  }

  if (startupProbe) {
    let started = false
    await repeat(startupProbe, (passed, failed) => {
      started = passed
      return passed || failed
    })
    if (!started) return signal.aborted ? undefined : onDead()
  }
  if (!readinessProbe) onReady(!signal.aborted)
  await Promise.all([
    readinessProbe &&
      repeat(readinessProbe, (passed, failed) => {
        if (passed || failed) onReady(passed)
        return false
      }),
    livenessProbe &&
      repeat(livenessProbe, (_passed, failed) => {
        if (failed) onDead()
        return failed
      }),
  ])
}
