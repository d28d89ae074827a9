// What the process beside an application says where neither native module loads.
const reason = 'no implementation of the hash works on this machine: install @node-rs/argon2 and @node-rs/bcrypt'
process.send({ kind: 'unfit', code: 'not_installed', reason }, () => process.exit(1))
