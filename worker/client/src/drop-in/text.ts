/** Bytes as the text that requests carry. */

/** Undefined for bytes that are not UTF-8: as text they would change. */
export function asText(bytes: Buffer): string | undefined {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? text : undefined
}
