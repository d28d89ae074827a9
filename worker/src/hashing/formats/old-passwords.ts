/** What old systems did to passwords before they hashed them. */

/** PHP's addslashes(), which WordPress applies to all that a form sends. */
export function slashed(password: string): string {
  return password.replace(/['"\\]/g, '\\$&').replaceAll('\0', '\\0')
}

/** PHP's trim(). */
export function trimmed(password: string): string {
  return password.replace(/^[ \t\n\r\0\v]+|[ \t\n\r\0\v]+$/g, '')
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** PHP's htmlspecialchars() as phpBB and MyBB call it: single quotes stay. */
export function escapedHtml(password: string): string {
  return password.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character)
}
