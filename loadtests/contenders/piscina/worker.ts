// What a thread of the pool runs. Awaited, as in the origin: the thread hands the hash on to libuv's threads, which
// all threads of a process share.
export { perform as default } from '../hashing.ts'
