import { NatsError, type KV, type KvEntry } from 'nats';
import { isTooFewServers, JetStreamError, type NatsLink } from './nats-link.js';

interface BucketInfo {
  readonly config: Record<string, unknown> & { readonly num_replicas: number };
  /** Its name is missing on a server that stands alone. */
  readonly cluster?: { readonly name?: string };
}

/**
 * Opens a key-value bucket, made when it is not there, and gives it as many copies as are wanted when there are as many servers; never fewer than it
 * has. It is read from its leader: a copy that lags could answer with a value that was replaced.
 * @throws NatsError; JetStreamError; BrokerError `unavailable`
 */
export async function openBucket(link: NatsLink, bucket: string, replicas: number): Promise<KV> {
  const kv = await openOrMake(link, bucket, replicas);
  await raise(link, `KV_${bucket}`, replicas);
  return kv;
}

async function openOrMake(link: NatsLink, bucket: string, replicas: number): Promise<KV> {
  const { views } = link.nc.jetstream();
  const options = { history: 1, allow_direct: false };
  try {
    return await views.kv(bucket, { ...options, replicas });
  } catch (error) {
    const apiError = error instanceof NatsError ? error.api_error : undefined;
    const { code = 0, description = '', err_code: number = 0 } = apiError ?? {};
    if (replicas === 1 || !isTooFewServers(new JetStreamError(code, number, description))) throw error;
    return views.kv(bucket, { ...options, replicas: 1 });
  }
}

/** Opening leaves a bucket that is there as it was made, perhaps while there was one server. */
async function raise(link: NatsLink, stream: string, replicas: number): Promise<void> {
  const { cluster, config } = await link.api<BucketInfo>(`STREAM.INFO.${stream}`);
  // A server that stands alone may accept any number, and keep one copy all the same.
  if (cluster?.name === undefined || config.num_replicas >= replicas) return;
  try {
    await link.api(`STREAM.UPDATE.${stream}`, { ...config, num_replicas: replicas });
  } catch (error) {
    // It gets them at a later start, when the servers are there.
    if (!isTooFewServers(error)) throw error;
  }
}

/** Writes what stands for `value` in JSON over the entry that was read; false when somebody else has written in between. */
export async function putOver(kv: KV, key: string, value: unknown, before: KvEntry | null): Promise<boolean> {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  try {
    if (before === null) await kv.create(key, bytes);
    else await kv.update(key, bytes, before.revision);
    return true;
  } catch (error) {
    if (isWrongRevision(error)) return false;
    throw error;
  }
}

/** Keys of a bucket hold no colon; topics no slash. */
export function keyOf(namespace: string): string {
  return namespace.replaceAll(':', '/');
}

function isWrongRevision(error: unknown): boolean {
  return error instanceof Error && /wrong last sequence/i.test(error.message);
}
