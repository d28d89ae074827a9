#!/usr/bin/env node
// The program `spillway-storm` of the package.
import { stormCommand } from './command.js'

void stormCommand(process.argv.slice(2), 'spillway-storm').then((code) => {
  process.exitCode = code
})
