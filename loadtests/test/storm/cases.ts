// What the tests and the application that they storm have to agree on.
/** The trials before a storm: of the first user and of the last. */
export const TRIALS = 2
/** How long the slow endpoint takes. */
export const SLOW_MS = 300
