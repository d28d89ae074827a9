// Shifts the wall clock of a process by CLOCK_SHIFT_MS; loaded by `--import`. The monotonic clock
// stays, as on a machine with a wrong time.
const shiftMs = Number(process.env.CLOCK_SHIFT_MS)
const RealDate = Date

globalThis.Date = class ShiftedDate extends RealDate {
  constructor(...values) {
    if (values.length === 0) super(RealDate.now() + shiftMs)
    else super(...values)
  }

  static now() {
    return RealDate.now() + shiftMs
  }
}
Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + shiftMs })
