/** Texts in files that people write, with editors that may choose another encoding. */
const decoder = new TextDecoder('utf-8', { fatal: true })

/** The text without its byte order mark; undefined if it is not UTF-8. */
export function utf8Of(bytes: Uint8Array): string | undefined {
  try {
    const text = decoder.decode(bytes)
    // ASCII in UTF-16 is valid UTF-8, with a NUL in each character.
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}
