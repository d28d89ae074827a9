// One task from standard input, one answer to standard output, and the process is over.
import { text } from 'node:stream/consumers'
import { perform } from '../hashing.ts'

process.stdout.write(JSON.stringify(await perform(JSON.parse(await text(process.stdin)))))
