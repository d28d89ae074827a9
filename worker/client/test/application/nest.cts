// A NestJS application as its users write one: the module by a factory, and passwords injected by the type of a parameter.
import 'reflect-metadata'
import { Body, Controller, HttpCode, Module, Post } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { PasswordsError } from '@spillway/client'
import { Passwords, SpillwayModule } from '@spillway/client/nestjs'

const users = new Map<string, string>()

class Credentials {
  name = ''
  password = ''
}

@Controller()
class UsersController {
  constructor(private readonly passwords: Passwords) {}

  @Post('users')
  async register(@Body() { name, password }: Credentials): Promise<void> {
    users.set(name, await this.passwords.hash(password))
  }

  @Post('login')
  @HttpCode(200)
  async login(@Body() { name, password }: Credentials): Promise<{ isRight: boolean }> {
    return { isRight: await this.passwords.verify(password, users.get(name) ?? null) }
  }
}

/** It does not import SpillwayModule, which is global. */
@Module({ controllers: [UsersController] })
class UsersModule {}

const spillway = SpillwayModule.forRootAsync({
  inject: [],
  useFactory: async () => ({ policy: { algorithm: 'bcrypt', cost: 5 }, waitMs: 60_000 }),
})

@Module({ imports: [spillway, UsersModule] })
class AppModule {}

async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
  await app.listen(0, '127.0.0.1')
  const url = await app.getUrl()
  const post = async (path: string, name: string, password: string) => {
    const body = JSON.stringify({ name, password })
    const response = await fetch(`${url}/${path}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    })
    return JSON.parse((await response.text()) || 'null')
  }
  await post('users', 'ada', 'correct horse')
  const right = await post('login', 'ada', 'correct horse')
  const wrong = await post('login', 'ada', 'wrong')
  const unknown = await post('login', 'eve', 'correct horse')

  // A login is in hand when the application is closed.
  const passwords = app.get(Passwords)
  users.set('slow', await passwords.hash('correct horse', { algorithm: 'bcrypt', cost: 12 }))
  const last = post('login', 'slow', 'correct horse')
  while (passwords.capacity().active === 0) await new Promise(setImmediate)
  const closing = app.close()
  const answered = await last
  await closing
  const code = await passwords.hash('x').catch((error) => error instanceof PasswordsError && error.code)

  const context = await NestFactory.createApplicationContext(SpillwayModule.forRoot(), { logger: ['error', 'warn'] })
  const { by } = context.get(Passwords).capacity()
  await context.close()
  // @ts-expect-error there is no such algorithm
  const unused = () => SpillwayModule.forRoot({ policy: { algorithm: 'md5' } })
  console.log(JSON.stringify([users.get('ada')?.slice(0, 7), right, wrong, unknown, answered, code, by, typeof unused]))
}

void main()
