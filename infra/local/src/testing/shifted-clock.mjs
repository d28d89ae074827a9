// Preloaded into a process (`--import`) whose wall clock is to be off by CLOCK_SHIFT_MS. The monotonic clock stays: that of
// machines whose clocks disagree runs alike as well.
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
