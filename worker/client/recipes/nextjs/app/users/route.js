import { register } from '../../lib/users.js'

export async function POST(request) {
  const { email, password } = await request.json()
  return new Response(null, { status: (await register(email, password)) ? 201 : 409 })
}
