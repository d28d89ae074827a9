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
    // A CommonJS module keeps its `default`, as in Node.
    deps: { interopDefault: false },
    // All files share their modules: loading them for each file took most of the time.
    isolate: false,
    restoreMocks: true,
    testTimeout: 60_000,
  },
})
