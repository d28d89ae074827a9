// The commands that a Redis server is given, by anyone. ioredis's own monitor() breaks when the
// first of them comes in the same packet as the answer to MONITOR.
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

interface MonitoredCommand {
  /** The name in lower case, then the arguments. */
  command: string[]
  byScript: boolean
}

/** Takes `redis://[user][:password@]host:port`. */
export async function monitorRedis(url: string) {
  const { hostname, port, username, password } = new URL(url)
  const socket = connect(Number(port), hostname)
  const lines = createInterface({ input: socket })
  const failed = new Promise<never>((_, reject) => {
    socket.on('error', reject).on('close', () => reject(new Error('Redis closed the connection of MONITOR')))
  })
  failed.catch(() => undefined)
  const commands: MonitoredCommand[] = []
  lines.on('line', (line: string) => {
    const [name, ...args] = Array.from(line.matchAll(/"((?:[^"\\]|\\.)*)"/g), ([, argument = '']) => argument)
    if (name !== undefined) {
      commands.push({ command: [name.toLowerCase(), ...args], byScript: /^\S+ \[\d+ lua\]/.test(line) })
    }
  })
  async function ask(command: string): Promise<void> {
    socket.write(`${command}\r\n`)
    const [answer] = await Promise.race([once(lines, 'line'), failed])
    if (answer === '+OK') return
    socket.destroy()
    throw new Error(`Redis did not accept ${command.split(' ')[0]}: ${answer}`)
  }
  if (password !== '') await ask(`AUTH ${username || 'default'} ${decodeURIComponent(password)}`)
  await ask('MONITOR')
  return {
    commands,
    close: (): void => void socket.destroy(),
  }
}
