// The time by Redis's clock, which deadlines are in.

/** The part of an ioredis connection that tells the time. */
interface TimeSource {
  time(): Promise<(number | string)[]>
}

/** Epoch milliseconds. */
export async function redisTime(redis: TimeSource): Promise<number> {
  const [seconds, microseconds] = await redis.time()
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
}
