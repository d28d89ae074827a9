// The command `pnpm size`: the size of an installation for a number of logins a second.
import { runCommand } from '@spillway/infra/processes/command'
import { calibrate, describeCalibration } from './calibrate.ts'
import { figures, sourceOf } from './figures.ts'
import { demandOf, parseOptions, usage } from './options.ts'
import { describe, size } from './sizing.ts'

await runCommand(async () => {
  const options = parseOptions(process.argv.slice(2))
  if (options === undefined) return console.log(usage)
  const calibration = options.calibration && (await calibrate(options.calibration, process.env))
  if (calibration !== undefined) console.log(describeCalibration(calibration, figures))
  const demand = demandOf(
    options,
    calibration === undefined
      ? { hashMs: figures.hashMs, hashSource: sourceOf(figures) }
      : {
          hashMs: calibration.fullMs,
          hashSource: `The time of a hash was measured now, on this machine, by ${calibration.engine}.`,
        },
  )
  if (demand === undefined) return
  if (calibration !== undefined) console.log()
  console.log(describe(demand, size(demand, figures), figures))
})
