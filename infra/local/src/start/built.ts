// `node --import tsx built.ts PROGRAM [ARGUMENT ...]`: builds the packages, then runs a program
// that imports what is built. In a fresh clone, the imports of the program would fail before it
// could build anything itself.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { runWithKeeper } from '../processes/command.ts'
import { build } from './build.ts'

const [program = ''] = process.argv.splice(2, 1)
process.argv[1] = resolve(program)
await runWithKeeper(build)
if (process.exitCode === undefined) await import(pathToFileURL(resolve(program)).href)
