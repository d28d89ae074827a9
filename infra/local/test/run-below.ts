// `node --import tsx run-below.ts FOLDER [FILTER ...]`: runs the test files below a folder as `pnpm
// test` does, without services.
import { isGreen, runTests, summary } from '../src/rig/runner.ts'

const [root = '', ...filters] = process.argv.slice(2)
const stopped = new AbortController()
process.on('SIGTERM', () => stopped.abort())
const { signal } = stopped
const prepare = async () => ({ close: async () => {} })
const results = await runTests({ root, filters, all: false, signal, prepare })
console.log(summary(results))
process.exit(isGreen(results) ? 0 : 1)
