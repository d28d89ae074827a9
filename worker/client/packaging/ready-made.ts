// What modules read or compile when they run is in the package ready-made: a bundle has no files
// beside it, and Node may be forbidden to compile text (--disallow-code-generation-from-strings).
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Ajv } from 'ajv'
import standalone from 'ajv/dist/standalone/index.js'
import { type Plugin, transform } from 'esbuild'
import '../dist/application/tickets.js'
import { readScript } from '@spillway/queue/redis/read-script'
import '@spillway/queue/wire/capacity'
import '@spillway/queue/wire/job'
import { known, validation } from '@spillway/queue/wire/schema'

/** In place of the module that compiles schemas: all validators, found by their schemas. */
export const validators: Plugin = {
  name: 'validators',
  setup({ onLoad }) {
    const resolveDir = join(import.meta.dirname, '../../queue/dist/wire')
    onLoad({ filter: /[\\/]wire[\\/]schema\.js$/ }, async () => {
      // Generated code: nobody reads its names.
      const { code } = await transform(compiled(), { minify: true, target: 'node20.19' })
      return { contents: code, loader: 'js', resolveDir }
    })
  },
}

function compiled(): string {
  const ajv = new Ajv({ ...validation, code: { source: true, esm: true } })
  const names = known.map((schema, n) => {
    ajv.addSchema(schema, `check${n}`)
    return `check${n}`
  })
  const bySchema = names.map((name, n) => `[${JSON.stringify(JSON.stringify(known[n]))}, ${name}]`)
  return `${standalone.default(ajv, Object.fromEntries(names.map((name) => [name, name])))}
    const bySchema = new Map([${bySchema.join(', ')}])
    export const checkFor = (schema) => {
      const validator = bySchema.get(JSON.stringify(schema))
      if (validator === undefined) throw new Error('a schema was not compiled with the package')
      return validator
    }`
}

/** In place of the module that reads scripts of Redis: the sources of all. */
export const scripts: Plugin = {
  name: 'scripts',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]redis[\\/]read-script\.js$/ }, () => ({ contents: sources(), loader: 'js' }))
  },
}

function sources(): string {
  const files = readdirSync(join(import.meta.dirname, '../../queue/dist/scripts')).filter((file) =>
    file.endsWith('.lua'),
  )
  const byName = files.map((file) => basename(file, '.lua')).map((name) => [name, readScript(name)])
  return `const sources = ${JSON.stringify(Object.fromEntries(byName))}
    export const readScript = (name) => sources[name]`
}
