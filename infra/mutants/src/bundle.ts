// `node --import tsx bundle.ts`, in a copy of the files: bundles the tests there.
import { build } from 'esbuild'
import { bundling, testFiles } from './files.ts'

await build({ ...bundling, entryPoints: testFiles() })
