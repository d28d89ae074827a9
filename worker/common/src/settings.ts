/** Settings as properties of a JSON Schema. The READMEs' tables are made from them. */
/** Both bounds are included. */
type Bounds = readonly [least: number, most?: number]

export function integer(byDefault: number, bounds: Bounds, description: string) {
  return { ...optionalInteger(bounds, description), default: byDefault }
}

export function optionalInteger([minimum, maximum = Number.MAX_SAFE_INTEGER]: Bounds, description: string) {
  return { type: 'integer', minimum, maximum, description } as const
}

export function boolean(byDefault: boolean, description: string) {
  return { type: 'boolean', default: byDefault, description } as const
}

export function text(
  byDefault: string,
  description: string,
  restriction: { readonly pattern?: string; readonly minLength?: number } = {},
) {
  return { type: 'string', default: byDefault, ...restriction, description } as const
}

export function required(description: string) {
  return { type: 'string', description } as const
}

/** A secret text: it is also read from the file that `NAME_FILE` names, and is never shown. */
export function secret<S extends { readonly type: 'string' }>(setting: S) {
  return { ...setting, writeOnly: true } as const
}

export function choice<const W extends readonly string[]>(byDefault: W[number], words: W, description: string) {
  return { type: 'string', default: byDefault, enum: words, description } as const
}

export const notEmpty = { minLength: 1 } as const
export const ports = [0, 65_535] as const

/** Whether a host of a URL or of a listener is this machine and no other. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '')
  return name === 'localhost' || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name)
}

/** The settings that gateways and workers have in common. */
export const commonSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: text(
    '',
    'URL of the trace collector, OTLP over HTTP (port 4318), without `/v1/traces`; if it is empty, there are no traces',
    { pattern: '^(https?://.+)?$' },
  ),
  LOG_LEVEL: choice(
    'info',
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    'Least severe level that is logged',
  ),
} as const

/** The entries of a comma-separated list; an empty text has no entry. */
export function listOf(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}
