// The package of the client, as `pnpm pack` makes it: with the engine for this platform, where it has been built.
import { basename } from 'node:path'
import { pack } from '../../../worker/client/packaging/pack.ts'
import type { Part } from './part.ts'

export const client: Part = async ({ outdir }) => ({ files: [basename(await pack(outdir))] })
