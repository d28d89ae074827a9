/** Names that options do not have: most are typing errors, and what they were to set would silently be as if it had not been given. */
export function refuseUnknown(what: string, given: object, known: object): void {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(known, name))
  if (unknown.length === 0) return
  throw new TypeError(`${what} have no ${unknown.join(', ')}: they have ${Object.keys(known).join(', ')}`)
}
