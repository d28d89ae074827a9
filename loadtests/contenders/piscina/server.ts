// Hashing in a pool of worker threads.
import { announce, serve } from '../rival-server.ts'
import { createPool } from './pool.ts'

announce(await serve(createPool(), process.env))
