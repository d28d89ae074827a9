// The entry of a worker as it stands in Redis, and the time at which it was written.

export const now = 1_800_000_000_000
export const entry = {
  slots: 4,
  serviceMs: 20,
  lineMs: 20,
  latencyMs: 20,
  at: now,
  name: 'host:1',
  keys: ['code'],
  busy: 0,
  finished: { answered: 0, skipped: 0, failed: 0 },
}
