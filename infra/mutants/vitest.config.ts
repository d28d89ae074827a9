// The unit tests of the modules in which mistakes are made, on their source: what is built of it holds no mistakes.
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const root = fileURLToPath(new URL('../..', import.meta.url))

export default defineConfig({
  root,
  resolve: {
    alias: [{ find: /^@spillway\/client\/(.*)$/, replacement: `${root}worker/client/src/$1.ts` }],
  },
  test: {
    include: ['{api,worker,worker/client}/test/unit/*.test.ts'],
    // These read pages, or take seconds.
    exclude: [
      '**/{settings-table,email-address,argon2,bcrypt,formats,hasher,memory-limit,recipe-goals,browser-*}.test.ts',
    ],
    // A module of CommonJS is imported as Node imports it.
    deps: { interopDefault: false },
    // Modules are loaded once for all files, which is most of the time otherwise.
    isolate: false,
    restoreMocks: true,
    testTimeout: 60_000,
  },
})
