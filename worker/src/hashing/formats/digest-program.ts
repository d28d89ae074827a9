/** A thread that computes digests, one after the other (digest-threads.ts). */
import { parentPort } from 'node:worker_threads'
import { computeDigest, type IteratedDigest } from './iterated-digests.js'

parentPort?.on('message', (request: IteratedDigest) => parentPort?.postMessage(computeDigest(request)))
