// Hashing in a pool of worker threads.
import { serve } from '../rival-server.ts'
import { createPool } from './pool.ts'

await serve(createPool(), process.env)
