import { Module } from '@nestjs/common'
import { AuthController } from './auth.controller.js'
import { AuthService } from './auth.service.js'
import { NeighboursController } from './neighbours.controller.js'

@Module({ controllers: [AuthController, NeighboursController], providers: [AuthService] })
export class AppModule {}
