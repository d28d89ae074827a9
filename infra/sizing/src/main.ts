// The command `pnpm size`: the size of an installation for a number of logins a second.
import { runCommand } from '@spillway/local/processes/command'
import { asksForHelp } from '@spillway/local/processes/command-line'
import { calibrate, describeCalibration } from './calibrate/calibrate.ts'
import { describe } from './describe.ts'
import { describePrice } from './describe-price.ts'
import { readFigures } from './figures.ts'
import { readCalibrationBefore, readDemand, readPricing, usage } from './options.ts'
import { measureHashes, priceOf } from './price.ts'
import { size } from './sizing.ts'

await runCommand(async () => {
  const args = process.argv.slice(2)
  if (asksForHelp(args)) return console.log(usage)
  const figures = readFigures()
  const before = readCalibrationBefore(args)
  const calibration = before && (await calibrate(before, process.env))
  if (calibration !== undefined) console.log(`${describeCalibration(calibration, figures)}\n`)
  const demand = readDemand(args, { hashMs: calibration?.fullMs ?? figures.hashMs })
  const pricing = readPricing(args)
  const found = size(demand, figures)
  console.log(describe(demand, found, figures))
  if (pricing === undefined) return
  console.log(`\n${describePrice(pricing, demand, priceOf(demand, found, figures, pricing), await measureHashes())}`)
})
