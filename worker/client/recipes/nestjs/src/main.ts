// NestJS: users register and log in.
import { NestFactory } from '@nestjs/core'
import { AppModule } from './app.module.js'

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
await app.listen(process.env.PORT ?? 3000)
