#!/usr/bin/env node
// The program `spillway-storm`.
import { stormCommand } from './command.ts'

void stormCommand(process.argv.slice(2), 'spillway-storm').then((code) => {
  process.exitCode = code
})
