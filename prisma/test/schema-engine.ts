// What leads from one schema to another, by Prisma's schema engine: its WebAssembly on the
// JavaScript driver, without the download that Prisma's command line makes.
import { readFile } from 'node:fs/promises'
import { bindMigrationAwareSqlAdapterFactory, type SqlDriverAdapter } from '@prisma/driver-adapter-utils'
import * as glue from '@prisma/schema-engine-wasm/schema_engine_bg'

// The parts used here of an API that @types/node lacks.
declare const WebAssembly: {
  instantiate(code: Uint8Array, imports: object): Promise<{ instance: { exports: { __wbindgen_start(): void } } }>
}

/** The SQL that leads from one schema to another, undefined for an empty database; empty where nothing differs. */
export async function schemaDiff(connection: SqlDriverAdapter, from: string | undefined, to: string): Promise<string> {
  loaded ??= load()
  await loaded
  const adapters = bindMigrationAwareSqlAdapterFactory({
    provider: connection.provider,
    adapterName: connection.adapterName,
    connect: async () => connection,
    connectToShadowDb: () => Promise.reject(new Error('No command used here replays migrations.')),
  })
  const engine = await glue.SchemaEngine.new({ datamodels: undefined }, () => {}, adapters)
  const datamodel = (content: string) => ({
    tag: 'schemaDatamodel' as const,
    files: [{ path: 'schema.prisma', content }],
  })
  const { exitCode, stdout } = await engine.diff({
    from: from === undefined ? { tag: 'empty' } : datamodel(from),
    to: datamodel(to),
    script: true,
    exitCode: true,
    filters: { externalTables: [], externalEnums: [] },
  })
  return exitCode === 0 ? '' : (stdout ?? '')
}

let loaded: Promise<void> | undefined

async function load(): Promise<void> {
  const code = new URL('schema_engine_bg.wasm', import.meta.resolve('@prisma/schema-engine-wasm/schema_engine_bg'))
  const { instance } = await WebAssembly.instantiate(await readFile(code), { './schema_engine_bg.js': { ...glue } })
  glue.__wbg_set_wasm(instance.exports)
  instance.exports.__wbindgen_start()
}
