// Preloaded into a recipe before the change: passwords are verified by nobody, but one after the other, and as long as a hash takes. What
// neighbours wait then is the framework's own work.
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')

const bcrypt = createRequire(join(process.cwd(), 'package.json'))('bcrypt')
const hashMs = Number(process.env.RECIPE_HASH_MS)
let last = Promise.resolve()

bcrypt.compare = () => {
  last = last.then(() => sleep(hashMs))
  return last.then(() => true)
}
