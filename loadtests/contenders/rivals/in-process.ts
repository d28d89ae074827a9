// Hashing in the handler: what most of the field's code does.
import { hash, verify } from '../hashing.ts'
import { announce, serve } from '../rival-server.ts'

announce(await serve({ hash, verify }))
