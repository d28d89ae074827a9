/** Redis not answering, as the one error that it is to everybody outside. */
import { PasswordClientError } from '../errors.js'

/** What Redis answers; when it does not, an error under the one code for that. */
export async function orQueueUnavailable<T>(answer: Promise<T>, failure: string): Promise<T> {
  try {
    return await answer
  } catch (error) {
    throw new PasswordClientError('queue_unavailable', failure, { cause: error })
  }
}
