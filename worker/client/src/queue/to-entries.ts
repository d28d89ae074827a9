/** Converts the result of HGETALL in a script, which alternates names and values. */
export function toEntries(pairs: unknown): Record<string, string> {
  const entries: Record<string, string> = {}
  if (Array.isArray(pairs))
    for (let i = 0; i + 1 < pairs.length; i += 2) entries[String(pairs[i])] = String(pairs[i + 1])
  return entries
}
