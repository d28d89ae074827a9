import { isRight } from '../../lib/users.js'

export async function POST(request) {
  const { email, password } = await request.json()
  return new Response(null, { status: (await isRight(email, password)) ? 200 : 401 })
}
