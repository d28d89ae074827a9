// Makes the package that applications install in dist/package, before `pnpm pack` and `pnpm publish`. Expects client and worker to be built.
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { defineConfig } from 'rolldown'
import license from 'rollup-plugin-license'

const dir = 'dist/package'
const entries = ['index', 'bcrypt', 'argon2', 'bcryptjs', 'nestjs']
const types = [...entries, 'follow', 'application/types', 'application/passwords-error']
/** Others need the text or notices of a licence to be passed on at most, as infra/release/licences.sh allows. */
const LICENCES = '(0BSD OR Apache-2.0 OR BlueOak-1.0.0 OR BSD-2-Clause OR BSD-3-Clause OR ISC OR MIT)'

const read = async (folder) => JSON.parse(await readFile(`${folder}/package.json`, 'utf8'))

async function manifest() {
  const [root, worker, client] = await Promise.all([read('../..'), read('..'), read('.')])
  const { name, version, description, dependencies } = client
  const doors = entries.slice(1).map((entry) => [`./${entry}`, door(entry)])
  return {
    name,
    version,
    description,
    license: root.license,
    engines: root.engines,
    main: './lib/index.cjs',
    type: 'commonjs',
    types: './types/index.d.ts',
    // For TypeScript that reads no `exports` (node10).
    typesVersions: { '*': { '*': ['./types/*.d.ts'] } },
    exports: {
      '.': door('index'),
      ...Object.fromEntries(doors),
      './follow': { types: './types/follow.d.mts', default: './lib/follow.mjs' },
      './package.json': './package.json',
    },
    bin: { spillway: 'lib/command.cjs' },
    sideEffects: false,
    dependencies: { ioredis: dependencies.ioredis },
    optionalDependencies: {
      '@node-rs/argon2': worker.dependencies['@node-rs/argon2'],
      '@node-rs/bcrypt': worker.dependencies['@node-rs/bcrypt'],
    },
    peerDependencies: { '@nestjs/common': '^10 || ^11 || ^12' },
    peerDependenciesMeta: { '@nestjs/common': { optional: true } },
  }
}

function door(entry) {
  return { types: `./types/${entry}.d.ts`, default: `./lib/${entry}.cjs` }
}

/** What is in the package beside the programs. */
const files = {
  name: 'files',
  async buildStart() {
    await rm(dir, { recursive: true, force: true })
  },
  async writeBundle() {
    await writeFile(`${dir}/package.json`, JSON.stringify(await manifest(), undefined, 2))
    await mkdir(`${dir}/types/application`, { recursive: true })
    for (const name of types) {
      const declarations = await readFile(`dist/${name}.d.ts`, 'utf8')
      const file = name === 'follow' ? 'follow.d.mts' : `${name}.d.ts`
      await writeFile(`${dir}/types/${file}`, declarations.replace(/^\/\/# sourceMappingURL=.*\n?/m, ''))
    }
    await cp('../queue/dist/scripts', `${dir}/lib/scripts`, { recursive: true })
    await cp('../../LICENSE', `${dir}/LICENSE`)
    // Links into the repository lead nowhere from an installed package.
    const readme = await readFile('README.md', 'utf8')
    await writeFile(`${dir}/README.md`, readme.replace(/\[([^\]]+)\]\((?!https?:|#)[^)]+\)/g, '$1'))
  },
}

const notices = license({
  thirdParty: {
    allow: { test: LICENCES, failOnUnlicensed: true, failOnViolation: true },
    output: [
      { file: `${dir}/THIRD-PARTY-LICENSES.txt` },
      // For the SBOM of a release.
      { file: 'dist/bundled.json', template: (bundled) => JSON.stringify(bundled.map(described)) },
    ],
  },
})

function described({ name, version, license }) {
  return { name, version, license, purl: `pkg:npm/${name.replace('@', '%40')}@${version}` }
}

/** CommonJS, which `import` loads, too: an application has one instance, whichever way it is loaded. */
const programs = {
  input: {
    ...Object.fromEntries(entries.map((entry) => [entry, `dist/${entry}.js`])),
    command: '../dist/command.cjs',
    'hashing-program': '../dist/beside.cjs',
    'hashing-in-place': '../dist/hashing-in-place.cjs',
    'digest-program': '../dist/hashing/methods/digest-program.js',
  },
  platform: 'node',
  // What is installed with the package or by its user, and what BullMQ does without.
  external: [/^(@nestjs|@node-rs)\//, /^(argon2|bcrypt|ioredis|msgpackr-extract|pg|redis)$/],
  output: {
    dir: `${dir}/lib`,
    format: 'cjs',
    // A default import is the whole module, as with the packages that are replaced.
    esModule: false,
    exports: 'named',
    // A thread is started from a file of this name.
    entryFileNames: ({ name }) => (name === 'digest-program' ? '[name].js' : '[name].cjs'),
    chunkFileNames: '[name].cjs',
    // Names stay, for stacks.
    minify: { compress: false, mangle: false, codegen: true },
  },
  plugins: [files, notices],
}

const forPages = {
  input: 'dist/follow.js',
  platform: 'browser',
  output: { file: `${dir}/lib/follow.mjs`, minify: true },
}

export default defineConfig([programs, forPages])
