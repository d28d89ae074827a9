// Hashing in the handler: what most of the field's code does.
import { hash, verify } from '../hashing.ts'
import { serve } from '../rival-server.ts'

await serve({ hash, verify }, process.env)
