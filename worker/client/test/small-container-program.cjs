// A hashing process in a container of 400 MiB, of which two processes have 128 each for themselves.
process.constrainedMemory = () => 400 * 2 ** 20
require('../../dist/beside.cjs')
