import { NatsError, type KV } from 'nats';
import { JetStreamError, type NatsLink } from './nats-link.js';
import { isTooFewServers } from './nats-stream.js';

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
