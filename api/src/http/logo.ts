/** The name above the description of the API, and its icon: water over a crest. */

const MARK =
  '<path d="M2 22h28v6H2z" fill="#4d7ea8"/><path d="M2 14c5 0 7-6 12-6s6 6 9 9 4 5 7 5v2H2z" fill="#2f9bdb"/>'

export const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${MARK}</svg>`

export const logo =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 176 40" height="40"><g transform="translate(0 4)">${MARK}</g>` +
  '<text x="42" y="29" font-family="system-ui, sans-serif" font-size="26" font-weight="700" fill="#fff">Spillway</text></svg>'
