/**
 * SIGUSR1 would have Node open its inspector, which shows whatever this process knows to all who reach the port. A listener takes
 * the signal away from Node, from the moment that this is imported. (Node's own --disable-sigusr1 is not known to Node 20.)
 */
process.on('SIGUSR1', () => undefined)
