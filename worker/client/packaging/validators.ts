// Validators in the package, compiled when it is made: Ajv stays out of it, and it runs where Node
// may not compile text (--disallow-code-generation-from-strings).
import { join } from 'node:path'
import { Ajv } from 'ajv'
import standalone from 'ajv/dist/standalone/index.js'
import { type Plugin, transform } from 'esbuild'
import '../dist/application/tickets.js'
import '@spillway/queue/wire/capacity'
import '@spillway/queue/wire/job'
import { known, validation } from '@spillway/queue/wire/schema'

/**
 * In place of the module that compiles them: all that it has compiled here, found by their schemas.
 */
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
