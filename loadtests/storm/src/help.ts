// What --help prints.
import { numberHelp, PROBES_MAX } from './numbers.ts'
import { BODY_MAX_BYTES } from './request.ts'
import { RETRY_MS, TOLD_MAX_MS } from './users.ts'

export const help = (
  command: string,
): string => `${command} --target url --login 'POST /login' [--body text] [--probe 'GET /path' ...]
${command} --target url --request file.json [--probe 'GET /path' ...]

Lets users log in again and again to an application that runs already, and meanwhile asks other endpoints, the probes,
at a constant rate. Says what the logins did to the probes, and what to do.

  --target url           the application, such as http://127.0.0.1:3000, by http or https
  --beyond-loopback      lets the target be another machine than this one; only where you may do that.
                         Its certificate is verified then
  --login 'POST /login'  method and path of a login
  --body text            its body, at most ${BODY_MAX_BYTES / 1024} KiB; {n} is the number of the user, from 1, here as in path
                         and headers
  --header 'name: value' a header of it; repeatable [content-type: application/json for a body that begins with { or [,
                         otherwise application/x-www-form-urlencoded]
  --request file         the login as JSON instead: {"method": "POST", "path": "/login", "headers": {}, "body": {}}.
                         Keeps a password out of the list of processes and the history of your shell
  --expect 200,302       the statuses of a login that succeeded; a form may redirect wrong passwords, too
                         [any from 200 to 399 but 202]
  --probe 'GET /path'    another endpoint to ask, which answers with a status from 200 to 399; repeatable, at most
                         ${PROBES_MAX} times [none]
  --probe-header 'n: v'  a header of all probes, such as a session's cookie; repeatable
${numberHelp}
  --json file            writes all figures
  --report file          writes a report, one HTML file
  --help                 prints this

A login is lost when there is no answer within the time limit, or the connection breaks. It is refused when the answer
is 202, 429 or 503 with Retry-After: the user then comes back as told, after at most ${TOLD_MAX_MS / 1_000} s. A user whose login was lost,
or had another answer, waits ${RETRY_MS / 1_000} s. Redirects are answers and are not followed. A probe without a good answer counts
as if it had taken the whole time limit. The logins begin when all probes before them are answered.

Before all that the first user and the last must be able to log in, and each probe must work; otherwise nothing is
stormed. Of what is sent only methods and paths, without their queries, are written or printed: no password.

Exit code: 0 when all probes stayed within --p99 during the storm, 1 when one did not, 2 when nothing was stormed, 130
after Ctrl-C, which ends the storm early and still says what was measured.
`
