// What Node loads before the runner and before each test file, by `--import`.
// @ts-check
import './typescript.js'
import './blocking-stdout.js'
