/** A thread that computes digests, one after the other (digests.ts). */
import { parentPort } from 'node:worker_threads'
import { computeDigest, type DigestRequest } from './digest-programs.js'

parentPort?.on('message', (request: DigestRequest) => parentPort?.postMessage(computeDigest(request)))
