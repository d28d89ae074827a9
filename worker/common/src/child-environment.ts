/** The environment of a child process that hashes: without its parent's secrets. */

/** Variables that Node, OpenSSL and the C library read. */
const RUNTIME_VARIABLE = /^(PATH|HOME|TZ|LANG|TMPDIR|GLIBC_TUNABLES|(NODE|SSL|LC|LD|MALLOC)_\w+)$/

/** The variables of the runtime, and those that `isWanted` too. */
export function childVariables(
  env: NodeJS.ProcessEnv,
  isWanted: (name: string) => boolean = () => false,
): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => isWanted(name) || RUNTIME_VARIABLE.test(name)))
}
