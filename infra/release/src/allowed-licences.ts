// What may be in a release: MIT-licensed programs, passed on by anyone, also inside programs whose source is closed.

/** By SPDX identifier, with the reason. */
export const allowedLicences: Record<string, string> = {
  '0BSD': 'asks for nothing',
  'Apache-2.0': 'asks for its text and notices, which packages bring along, and grants patents',
  'BlueOak-1.0.0': 'asks for its text',
  'BSD-2-Clause': 'asks for its text',
  'BSD-3-Clause': 'asks for its text, and not to advertise with the names of its authors',
  ISC: 'asks for its text',
  MIT: 'asks for its text',
  'MIT-0': 'asks for nothing',
}

/** Packages that say nothing that a program can read, by name: the licence that their text was found to be. */
export const readByHand: Record<string, string> = {}
