import { stat } from 'node:fs/promises'

export const dynamic = 'force-dynamic'

export async function GET() {
  const { size } = await stat('package.json')
  return Response.json({ size })
}
