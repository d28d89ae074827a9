// Prisma's schema engine as WebAssembly over the JavaScript driver: no native binary, no download. It is the build of the Prisma command
// line of the same release.
import { readFile } from 'node:fs/promises'
import { bindMigrationAwareSqlAdapterFactory, type SqlDriverAdapter } from '@prisma/driver-adapter-utils'
import * as glue from '@prisma/schema-engine-wasm/schema_engine_bg'

// The parts used here of an API that @types/node lacks.
declare const WebAssembly: {
  instantiate(code: Uint8Array, imports: object): Promise<{ instance: { exports: { __wbindgen_start(): void } } }>
}

/** Starts an engine on a connection. The caller disposes of the connection. */
export async function startSchemaEngine(connection: SqlDriverAdapter): Promise<glue.SchemaEngine> {
  loaded ??= load()
  await loaded
  const adapters = bindMigrationAwareSqlAdapterFactory({
    provider: connection.provider,
    adapterName: connection.adapterName,
    connect: async () => connection,
    connectToShadowDb: () => Promise.reject(new Error('No command used here replays migrations.')),
  })
  return await glue.SchemaEngine.new({ datamodels: undefined }, () => {}, adapters)
}

let loaded: Promise<void> | undefined

async function load(): Promise<void> {
  // The engine never clears the 10 s timer of its wait for the lock, which would keep the process alive.
  const timers = Object.keys(glue).filter((name) => name.startsWith('__wbg_setTimeout_'))
  const setUnheldTimeout = (run: () => void, delayMs: number) => setTimeout(run, delayMs).unref()
  const imports = { ...glue, ...Object.fromEntries(timers.map((name) => [name, setUnheldTimeout])) }

  const code = new URL('schema_engine_bg.wasm', import.meta.resolve('@prisma/schema-engine-wasm/schema_engine_bg'))
  const { instance } = await WebAssembly.instantiate(await readFile(code), { './schema_engine_bg.js': imports })
  glue.__wbg_set_wasm(instance.exports)
  instance.exports.__wbindgen_start()
}
