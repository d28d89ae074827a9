// Some hundred texts, and the address that each of them is, if it is an address.

const refused = (texts: readonly string[]) => texts.map((text) => [text, undefined] as const)
const same = (address: string, texts: readonly string[]) => [address, ...texts].map((text) => [text, address] as const)

/** ASCII without letters, digits, and what stands between them. */
const specials = [...'()<>[]:;@\\,"']
const atext = [..."!#$%&'*+-/=?^_`{|}~"]
/** Characters that cannot be seen, turn the direction, or that Unicode does not describe. */
const unseen = [
  ...['\u00a0', '\u00ad', '\u034f', '\u061c', '\u115f', '\u1680', '\u180e', '\u200b', '\u200c', '\u200d', '\u200e'],
  ...['\u2003', '\u2028', '\u202e', '\u2060', '\u2066', '\u2800', '\u3000', '\u3164', '\ufe0f', '\ufeff', '\uffa0'],
  ...['\ue000', '\u0378', '\u{1d173}', '\u{e0061}', '\u{e0100}', '\ud83d', '\0', '\t', '\r', '\n', '\x7f', ' '],
]
/** Letters that NFKC makes `v`, `i` and so on of. */
const compatible = ['\uff56', '\u24e5', '\u{1d42f}', '\u2174', '\u1d5b', '\ufb01', '\u017f', '\u210a', '\u2460']

export const addresses: readonly (readonly [text: string, address: string | undefined])[] = [
  ...same('victim@shop.test', [
    ...['VICTIM@SHOP.TEST', 'Victim@Shop.Test', ' victim@shop.test', 'victim@shop.test\t', '\r\nvictim@shop.test\n'],
    ...['"victim"@shop.test', '"VICTIM"@shop.test', 'victim@\uff53\uff48\uff4f\uff50.test', 'victim@shop\u3002test'],
    ...['victim@shop\uff0etest', 'victim@shop\uff61test', 'victim@\u24e2\u24d7\u24de\u24df.test'],
    ...['victim@\u017fhop.test'],
    ...['victim@shop.te\u017ft', 'victim@\u02e2hop.test', 'victim@s\u2095op.test', 'victim@sh\u2134p.test'],
  ]),
  // What is no part of an address, at each place of one that is.
  ...specials.flatMap((special) =>
    refused([
      `${special}victim@shop.test`,
      `vic${special}tim@shop.test`,
      `victim@sh${special}op.test`,
      `victim@shop.test${special}`,
    ]),
  ),
  ...refused([
    ...['victim@shop.test>>', '<<victim@shop.test', '<victim@shop.test>', 'Victim <victim@shop.test>', '<>@shop.test'],
    ...['victim@shop.test(1)', 'victim(1)@shop.test', 'a@b@shop.test'],
    ...['boss@evil.test,@corp.test', 'boss@evil.test;boss@corp.test', 'boss@evil.test\0.corp.test', 'a:b@shop.test'],
    ...['"boss@evil.test"@corp.test', '"a\\"b"@shop.test'],
    ...['"a b"@shop.test', '"a,b"@shop.test', '"a<b"@shop.test', '"a\\b"@shop.test', '"@shop.test', '""@shop.test'],
    ...['"a"b@shop.test', 'a"b"@shop.test', '"a".b@shop.test', 'a."b"@shop.test', '"a""b"@shop.test', 'x"@shop.test'],
    ...['@a.test,@b.test:victim@shop.test', 'victim@shop.test\r\nRCPT TO:<x@y.test>', 'victim@shop.test SIZE=1'],
    ...['', ' ', '@', 'victim', 'victim@', '@shop.test', '.@shop.test', '.victim@shop.test', 'victim.@shop.test'],
    ...['vic..tim@shop.test', 'victim@shop..test', 'victim@shop', 'victim@localhost'],
    ...['victim@shop.test\u3002', 'victim@-shop.test', 'victim@shop-.test'],
    ...['victim@sh_op.test', 'victim@sh%6fp.test', 'victim@shop.test:25', 'victim@shop.test/x', 'victim@shop.test?x'],
    ...['victim@shop.test#x', 'victim@127.0.0.1', 'victim@2130706433', 'victim@0x7f.1', 'victim@1.2', 'victim@shop.1'],
    ...['victim@[127.0.0.1]', 'victim@\u2460.\u2460', `victim@${'x'.repeat(64)}.test`, 'victim@xn--a.test'],
    ...['victim@xn--.test', 'victim@xn--n3h.test', 'victim@\u{1f511}.test'],
    ...['victim@\u0301shop.test', 'victim@shop.\u0301test', '\u0338victim@shop.test', 'a.\u0338victim@shop.test'],
    ...['victim\uff20shop.test', 'victim@evil.test\uff20shop.test', 'victim\ufe6bx@shop.test'],
    ...['victim@shop\u2488test', 'victim@sh\u20acp.test', 'victim@a\u2260b.test'],
    ...[`${'x'.repeat(65)}@shop.test`, `${'\u00e9'.repeat(33)}@shop.test`, `victim@${'x.'.repeat(124)}test`],
  ]),
  ...unseen.flatMap((character) => refused([`vic${character}tim@shop.test`, `victim@sh${character}op.test`])),
  ...compatible.flatMap((letter) => refused([`${letter}ictim@shop.test`, `"${letter}"@shop.test`])),
  ...atext.flatMap((character) => [
    ...same(`a${character}b@shop.test`, [`"a${character}b"@shop.test`]),
    [`victim@sh${character}op.test`, character === '-' ? 'victim@sh-op.test' : undefined] as const,
  ]),
  ...same('"a..b"@shop.test', ['"A..B"@SHOP.test']),
  ...same('".a"@shop.test', []),
  ...same('a.b.c@shop.test', ['"a.b.c"@shop.test']),
  ...same('zo\u00eb@shop.test', ['zoe\u0308@shop.test', 'ZO\u00cb@shop.test', '"zo\u00eb"@shop.test']),
  ...same('stra\u00dfe@shop.test', ['STRA\u1e9eE@shop.test']),
  ...same('vi\u0307ctim@shop.test', ['v\u0130ctim@shop.test']),
  ...same('\u03c3\u03b1\u03c2@shop.test', ['\u03a3\u0391\u03a3@shop.test']),
  ...same('\u6f22\u5b57@shop.test', []),
  ...same('\u{1f511}@shop.test', []),
  ...same('ada@xn--mnchen-3ya.test', [
    'ada@m\u00fcnchen.test',
    'ada@mu\u0308nchen.test',
    'ada@XN--MNCHEN-3YA.test',
    'ada@M\u00dcNCHEN.test',
  ]),
  ...same('zo\u00eb@xn--mnchen-3ya.test', ['zo\u00eb@m\u00fcnchen.test']),
  ...same('ada@xn--strae-oqa.test', ['ada@stra\u00dfe.test', 'ada@STRA\u1e9eE.test']),
  ...same('ada@xn--wgv71a.test', ['ada@\u65e5\u672c\u3002test']),
  ...same('ada@shop.xn--jxalpdlp', ['ada@shop.\u03b4\u03bf\u03ba\u03b9\u03bc\u03ae']),
  ...same('ada@1.2.3.4.test', []),
  ...same(`${'x'.repeat(64)}@shop.test`, []),
  ...same(`${'\u00e9'.repeat(32)}@shop.test`, []),
  ...same(`x@${'x.'.repeat(123)}test.t`, []),
  ...same(`victim@${'x'.repeat(63)}.test`, []),
]
