// What an application does with bcrypt and argon2, as an ES module. Nothing is closed: the process ends when there is no more to do.
import argon2, { type Options } from '@spillway/client/argon2'
import bcrypt, * as named from '@spillway/client/bcrypt'
import bcryptjs from '@spillway/client/bcryptjs'

const cheap: Options = { memoryCost: 64, timeCost: 1, parallelism: 1, type: argon2.argon2id }

const stored: string = await bcrypt.hash('correct horse', await bcrypt.genSalt(5))
const isRight: boolean = await named.compare(Buffer.from('correct horse'), stored)
const isWrong = await new Promise<boolean>((resolve) => bcrypt.compare('wrong', stored, (_, same) => resolve(same)))
const digest: string = await argon2.hash('correct horse', cheap)
const raw: Buffer = await argon2.hash('correct horse', { ...cheap, raw: true })
const isDigest: boolean = await argon2.verify(digest, 'correct horse')
const needsRehash: boolean = argon2.needsRehash(digest)
console.log(JSON.stringify([stored.slice(0, 7), isRight, isWrong, raw.byteLength, isDigest, needsRehash]))

if (!(await bcryptjs.compare('correct horse', await bcryptjs.hash('correct horse', 4)))) throw new Error('no match')
