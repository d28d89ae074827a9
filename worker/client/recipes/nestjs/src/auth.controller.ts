import { Body, ConflictException, Controller, HttpCode, Post, UnauthorizedException } from '@nestjs/common'
import { AuthService } from './auth.service.js'

class Credentials {
  email = ''
  password = ''
}

@Controller()
export class AuthController {
  constructor(private readonly auth: AuthService) {}

  @Post('users')
  async register(@Body() { email, password }: Credentials): Promise<void> {
    if (!(await this.auth.register(email, password))) throw new ConflictException()
  }

  @Post('login')
  @HttpCode(200)
  async login(@Body() { email, password }: Credentials): Promise<void> {
    if (!(await this.auth.isRight(email, password))) throw new UnauthorizedException()
  }
}
