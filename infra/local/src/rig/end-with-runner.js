// Loaded first by each process of test files: it ends with the runner, also when that is killed and a test would go on for ever.
// @ts-check
process.once('disconnect', () => process.exit(1))
