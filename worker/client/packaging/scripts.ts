// Scripts of Redis in the package: a bundle that an application makes of it has no files beside it.
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { readScript } from '@spillway/queue/redis/read-script'
import type { Plugin } from 'esbuild'

/** In place of the module that reads them: the sources of all. */
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
