// Expressions of SPDX, as far as licences of packages use them: names, AND, OR, WITH and parentheses.

/**
 * Whether what an expression asks for can be met by allowed licences alone: all sides of an AND, one side of an OR. A licence with an
 * exception is allowed by both: `Apache-2.0 WITH LLVM-exception`. Crates of old write a slash for OR.
 */
export function isAllowed(expression: string, allowed: ReadonlySet<string>): boolean {
  const words = expression.replaceAll('/', ' OR ').match(/[()]|[^\s()]+/g) ?? []
  let at = 0

  function either(): boolean {
    let met = both()
    while (words[at] === 'OR') {
      at++
      // Read in any case, so that the whole expression is.
      met = both() || met
    }
    return met
  }

  function both(): boolean {
    let met = one()
    while (words[at] === 'AND') {
      at++
      met = one() && met
    }
    return met
  }

  function one(): boolean {
    const word = words[at++]
    if (word === '(') {
      const met = either()
      return words[at++] === ')' && met
    }
    if (words[at] !== 'WITH') return word !== undefined && allowed.has(word)
    at += 2
    return allowed.has(`${word} WITH ${words[at - 1]}`)
  }

  const met = either()
  return met && at === words.length
}
