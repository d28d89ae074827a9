// The same as CommonJS, with the imports that its TypeScript allows.
import argon2, { type Options } from '@spillway/client/argon2'
import * as bcrypt from '@spillway/client/bcrypt'

import required = require('@spillway/client/bcrypt')

const cheap: Options = { memoryCost: 64, timeCost: 1, parallelism: 1, type: argon2.argon2id }

async function main(): Promise<void> {
  const stored: string = await bcrypt.hash('correct horse', await required.genSalt(5))
  const isRight: boolean = await required.default.compare(Buffer.from('correct horse'), stored)
  const isWrong = await new Promise<boolean>((resolve) => bcrypt.compare('wrong', stored, (_, same) => resolve(same)))
  const digest: string = await argon2.hash('correct horse', cheap)
  const raw: Buffer = await argon2.hash('correct horse', { ...cheap, raw: true })
  const isDigest: boolean = await argon2.verify(digest, 'correct horse')
  const needsRehash: boolean = argon2.needsRehash(digest)
  console.log(JSON.stringify([stored.slice(0, 7), isRight, isWrong, raw.byteLength, isDigest, needsRehash]))
}

void main()
