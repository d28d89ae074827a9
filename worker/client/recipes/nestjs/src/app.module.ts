import { Module } from '@nestjs/common'
import { SpillwayModule } from '@spillway/client/nestjs'
import { AuthController } from './auth.controller.js'
import { AuthService } from './auth.service.js'

@Module({ imports: [SpillwayModule.forRoot()], controllers: [AuthController], providers: [AuthService] })
export class AppModule {}
