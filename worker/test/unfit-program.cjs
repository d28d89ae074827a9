// What the process beside an application says where neither native module loads.
process.send({ kind: 'unfit', reason: 'no implementation of the hash works on this machine' }, () => process.exit(1))
