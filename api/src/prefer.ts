/** The Prefer header (RFC 7240), as far as it is about waiting. */

export interface WaitPreference {
  /** How long the client wants its request held, in milliseconds; undefined when it does not say. */
  waitMs: number | undefined
  /** The preferences taken into account, for Preference-Applied. */
  applied: string | undefined
}

/** Reads `respond-async` and `wait=<seconds>`; anything else, and anything malformed, is ignored as the RFC asks. */
export function parsePrefer(header: string | string[] | undefined): WaitPreference {
  const preferences = [header ?? []].flat().join(',').toLowerCase().split(',')
  const names = preferences.map((preference) => preference.split(';')[0]?.trim() ?? '')
  if (names.includes('respond-async')) return { waitMs: 0, applied: 'respond-async' }
  for (const name of names) {
    const seconds = /^wait\s*=\s*"?(\d{1,6})"?$/.exec(name)?.[1]
    if (seconds !== undefined) return { waitMs: Number(seconds) * 1_000, applied: `wait=${seconds}` }
  }
  return { waitMs: undefined, applied: undefined }
}
