/** The environment of a child process that hashes: none of its parent's secrets. */

/** Variables that Node, OpenSSL, the C library and the OpenTelemetry SDK read. */
const RUNTIME_VARIABLE = /^(PATH|HOME|TZ|LANG|TMPDIR|GLIBC_TUNABLES|(NODE|SSL|LC|LD|MALLOC|OTEL)_\w+)$/

/** The variables of the runtime, and these. */
export function childVariables(env: NodeJS.ProcessEnv, names: readonly string[] = []): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => names.includes(name) || RUNTIME_VARIABLE.test(name)))
}
