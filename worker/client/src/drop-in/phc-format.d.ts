// The package has no types of its own. If a text does not contain them, params, salt and hash are
// undefined, and reading them throws.
declare module '@phc/format' {
  export function serialize(fields: object): string
  export function deserialize(text: string): PhcFields

  interface PhcFields {
    id: string
    version?: number
    params: Record<string, unknown>
    salt: unknown
    hash: Buffer
  }
}
