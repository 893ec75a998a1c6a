/** What a server answers while slots move, a replica takes over or a server loads: the same call will be served soon. */
const passing =
  /^(MOVED|ASK|CLUSTERDOWN|TRYAGAIN|READONLY|LOADING|MASTERDOWN|NOREPLICAS|UNBLOCKED|BUSY|NOSCRIPT)\b/;

/**
 * Whether trying again makes sense. Everything that is no answer of a server (a lost connection, a timeout, no server known) is such a
 * case: the outcome is then unknown, and the call may have been carried out.
 */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name !== 'ReplyError' || passing.test(error.message);
}

/** For people: without the command and its arguments, which hold user data. */
export function describeRedisError(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message.split('\n', 1)[0]! : 'no answer';
}
