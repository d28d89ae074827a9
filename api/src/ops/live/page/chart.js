// A line over the last five minutes, as SVG: newest on the right, 0 at the bottom.

const WIDTH = 300
const HEIGHT = 100
const NAMESPACE = 'http://www.w3.org/2000/svg'

/** A peak of fewer samples is cut off at the top rather than flattening everything else for minutes. */
const LASTING_SAMPLES = 3

/**
 * The value at the top of a scale: the highest that lasted, or was there just now, and at least 1.
 * @param {readonly (number | null)[]} values
 */
export function scaleOf(values) {
  const known = values.map((value) => value ?? 0)
  const lasting = known.map((_, index) => Math.min(...known.slice(index, index + LASTING_SAMPLES)))
  return Math.max(1, ...lasting, ...known.slice(-LASTING_SAMPLES))
}

/**
 * Draws over what was there. Every line has one value a sample, null where nothing is known.
 * @param {Element} svg
 * @param {{ kind: 'line' | 'dash', values: readonly (number | null)[] }[]} lines
 * @param {{ samples: number, max: number }} scale how many samples fill the width, and the value at the top
 */
export function drawChart(svg, lines, { samples, max }) {
  svg.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`)
  svg.setAttribute('preserveAspectRatio', 'none')
  svg.replaceChildren()
  for (const { kind, values } of lines) {
    const points = values.flatMap((value, index) => {
      const x = WIDTH - ((values.length - 1 - index) / (samples - 1)) * WIDTH
      return value === null ? [] : [[x, HEIGHT - (Math.min(value, max) / max) * (HEIGHT - 2) - 1]]
    })
    const [first] = points
    const last = points.at(-1)
    if (first === undefined || last === undefined) continue
    const path = points.map(([x, y]) => `${x?.toFixed(1)},${y?.toFixed(1)}`).join(' L')
    if (kind === 'line') append(svg, 'area', `M${first[0]},${HEIGHT} L${path} L${last[0]},${HEIGHT} Z`)
    append(svg, kind, `M${path}`)
  }
}

/**
 * @param {Element} svg
 * @param {string} name
 * @param {string} path
 */
function append(svg, name, path) {
  const element = document.createElementNS(NAMESPACE, 'path')
  element.setAttribute('class', name)
  element.setAttribute('d', path)
  svg.append(element)
}
