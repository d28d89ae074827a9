// The package.json of the package, made from the workspace's and from the packages that it runs.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, doors, pageDoor, peers } from './bundle.ts'

const clientDir = join(import.meta.dirname, '..')
const workerDir = join(clientDir, '..')
const rootDir = join(workerDir, '..')

interface Manifest {
  name: string
  version: string
  description: string
  engines: Record<string, string>
  license: string
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
}

export function packageManifest(): object {
  const client = read(clientDir)
  const worker = read(workerDir)
  const root = read(rootDir)
  const pinned = (from: Record<string, string>, name: string) => ({ [name]: from[name] })
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
    typesVersions: {
      '*': {
        ...Object.fromEntries(doors.slice(1).map((door) => [door, [`./${door}.d.cts`]])),
        [pageDoor]: [`./${pageDoor}.d.ts`],
      },
    },
    exports: {
      ...Object.fromEntries(doors.map((door) => [door === 'index' ? '.' : `./${door}`, conditionsOf(door)])),
      [`./${pageDoor}`]: { types: `./${pageDoor}.d.ts`, default: `./${pageDoor}.js` },
      './package.json': './package.json',
    },
    bin: { spillway: `./${command}.cjs` },
    files: [
      '*.js',
      '*.mjs',
      '**/*.cjs',
      '**/*.d.ts',
      '**/*.d.cts',
      '*.node',
      'LICENSE',
      'THIRD-PARTY-LICENSES.txt',
      'README.md',
    ],
    sideEffects: false,
    // Yarn's Plug'n'Play: Node runs the process beside an application from a file, and not from a
    // zip.
    preferUnplugged: true,
    dependencies: pinned(client.dependencies, 'ioredis'),
    // Workers have version 2 of @node-rs/bcrypt. It is not published for every platform that it
    // names, and yarn then installs nothing of it; nor is `bcrypt` taken, whose install script
    // brings node-gyp with yarn.
    optionalDependencies: {
      ...pinned(worker.dependencies, '@node-rs/argon2'),
      ...pinned(client.devDependencies, '@node-rs/bcrypt'),
    },
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map((name) => [name, { optional: true }])),
    ...commit(),
  }
}

function conditionsOf(door: string): object {
  return {
    import: { types: `./${door}.d.ts`, default: `./${door}.js` },
    require: { types: `./${door}.d.cts`, default: `./${door}.cjs` },
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
