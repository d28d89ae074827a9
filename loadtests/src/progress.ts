// A line with the running step, the progress of the whole, and the time left; on a terminal it is drawn over itself.

const WIDTH = 24
const REDRAW_MS = 500

export interface Progress {
  /** Starts a step that is expected to take so long. */
  begin(what: string, estimatedS: number): void
  /** Ends the step; a failure gets a line of its own. */
  end(failure?: string): void
  close(): void
}

export function createProgress(totalS: number, output: NodeJS.WriteStream): Progress {
  let doneS = 0
  let current = { what: '', estimatedS: 0, startMs: performance.now() }
  const draw = () => {
    const elapsedS = Math.min((performance.now() - current.startMs) / 1_000, current.estimatedS)
    const share = totalS === 0 ? 1 : Math.min((doneS + elapsedS) / totalS, 1)
    const bar = '█'.repeat(Math.round(share * WIDTH)).padEnd(WIDTH, '░')
    const line = `${bar} ${Math.round(share * 100)} %  ${timeLeft(totalS - doneS - elapsedS)}  ${current.what}`
    output.write(`\r\u001b[2K${line.slice(0, Math.max((output.columns ?? 100) - 1, 40))}`)
  }
  const timer = output.isTTY ? setInterval(draw, REDRAW_MS) : undefined

  return {
    begin(what, estimatedS) {
      current = { what, estimatedS, startMs: performance.now() }
      if (output.isTTY) draw()
      else output.write(`${timeLeft(totalS - doneS)}  ${what}\n`)
    },
    end(failure) {
      doneS += current.estimatedS
      current.estimatedS = 0
      if (failure !== undefined) output.write(`${output.isTTY ? '\r\u001b[2K' : ''}  ${current.what}: ${failure}\n`)
    },
    close() {
      clearInterval(timer)
      if (output.isTTY) output.write('\r\u001b[2K')
    },
  }
}

function timeLeft(seconds: number): string {
  const whole = Math.max(Math.round(seconds), 0)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')} left`
}
