import { stat } from 'node:fs/promises'
import { Controller, Get } from '@nestjs/common'

@Controller()
export class NeighboursController {
  @Get('file')
  async file(): Promise<{ size: number }> {
    const { size } = await stat('package.json')
    return { size }
  }

  @Get('time')
  time(): { now: number } {
    return { now: Date.now() }
  }
}
