/**
 * Importing this keeps SIGUSR1 from opening Node's inspector, which would expose the memory of the process: a listener replaces
 * Node's handler. (Node 20 lacks --disable-sigusr1.)
 */
process.on('SIGUSR1', () => undefined)
