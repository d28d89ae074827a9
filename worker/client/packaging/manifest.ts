// The package.json of the package, made from the one of the workspace and those of the packages that it runs.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const clientDir = join(import.meta.dirname, '..')
const workerDir = join(clientDir, '..')
const rootDir = join(workerDir, '..')

/**
 * Workers have version 2. It is not published for every platform that it names, and yarn then installs nothing of it; nor is `bcrypt` taken,
 * whose install script brings node-gyp with yarn.
 */
const BCRYPT = { '@node-rs/bcrypt': '1.10.8' }

interface Manifest {
  name: string
  version: string
  description: string
  engines: Record<string, string>
  license: string
  dependencies: Record<string, string>
}

export function packageManifest(): object {
  const client = read(clientDir)
  const worker = read(workerDir)
  const root = read(rootDir)
  const pinned = (from: Manifest, ...names: string[]) =>
    Object.fromEntries(names.map((name) => [name, from.dependencies[name]]))
  return {
    name: client.name,
    version: client.version,
    description: client.description,
    license: root.license,
    engines: root.engines,
    type: 'module',
    // For TypeScript that reads no `exports` (moduleResolution node10).
    main: './index.cjs',
    types: './index.d.cts',
    exports: {
      '.': {
        import: { types: './index.d.ts', default: './index.js' },
        require: { types: './index.d.cts', default: './index.cjs' },
      },
      './package.json': './package.json',
    },
    files: ['*.js', '*.cjs', '**/*.d.ts', '**/*.d.cts', 'LICENSE', 'THIRD-PARTY-LICENSES.txt', 'README.md'],
    sideEffects: false,
    dependencies: pinned(client, 'ioredis'),
    optionalDependencies: { ...pinned(worker, '@node-rs/argon2'), ...BCRYPT },
    ...commit(),
  }
}

function read(dir: string): Manifest {
  return JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'))
}

/** Where the version comes from, if it was made in a clone. */
function commit(): { gitHead?: string } {
  try {
    const head = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: rootDir, stdio: ['ignore', 'pipe', 'ignore'] })
    return { gitHead: head.toString().trim() }
  } catch {
    return {}
  }
}
