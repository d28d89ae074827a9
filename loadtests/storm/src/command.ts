// The command: reads the options, storms, says what was measured and writes it down.
import { constants } from 'node:fs'
import { access, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { report as print, UserError } from '@spillway/infra/processes/command-line'
import { asksForHelp, help, parseOptions } from './options.ts'
import { renderReport } from './report.ts'
import { storm } from './storm.ts'
import { missed } from './words/advice.ts'
import { inWords } from './words/in-words.ts'

const HELD = 0
const MISSED = 1
const NOT_STORMED = 2
const INTERRUPTED = 130

/**
 * Never rejects. A signal ends the storm early with what was measured; a second one ends the
 * process.
 *
 * @param name the command as it was typed: `spillway-storm`
 * @returns the exit code: 0 when all probes stayed within the limit, 1 when one missed it, 2 when
 * nothing was stormed, 130 after a signal
 */
export async function stormCommand(args: readonly string[], name: string): Promise<number> {
  const interruption = new AbortController()
  const interrupt = () => interruption.abort()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt)
  try {
    return await run(args, name, interruption.signal)
  } catch (error) {
    if (interruption.signal.aborted) {
      console.error('Interrupted: nothing was stormed.')
      return INTERRUPTED
    }
    print(error)
    return NOT_STORMED
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt)
  }
}

async function run(args: readonly string[], name: string, signal: AbortSignal): Promise<number> {
  if (asksForHelp(args)) {
    console.log(help(name))
    return HELD
  }
  const { json, report, ...options } = await parseOptions(args, name)
  for (const file of [json, report]) if (file !== undefined) await refuseUnwritable(file)
  const { isTTY } = process.stdout
  const progress = (line: string) => isTTY && process.stdout.write(`\r\u001b[2K${line}`)
  const result = await storm(options, { signal, progress }).finally(() => progress(''))
  console.log(inWords(result))
  if (json !== undefined) await writeFile(json, `${JSON.stringify(result, undefined, 1)}\n`)
  if (report !== undefined) await writeFile(report, renderReport(result))
  if (result.interrupted) return INTERRUPTED
  return missed(result).length > 0 ? MISSED : HELD
}

/** Told before minutes of work, not after. */
async function refuseUnwritable(file: string): Promise<void> {
  await access(dirname(file), constants.W_OK).catch((cause) => {
    throw new UserError(`${file} cannot be written: its folder is missing, or not yours.`, { cause })
  })
}
