/**
 * The names of the settings outside the file. The environment name is the contract; the flag is the same name in
 * kebab case without the prefix (`TOPICAST_NATS_URL` is `--nats-url`).
 */

export const envPrefix = 'TOPICAST_';
/** Names the settings file; not a setting itself. */
export const configFileEnv = 'TOPICAST_CONFIG';
/** Names that are not settings of a node and may be set all the same: the client commands read them. */
export const clientEnv = ['TOPICAST_URL', 'TOPICAST_TOKEN'];

export interface Setting {
  /** Where the value goes in the settings: one key, or `limits` and a key. */
  readonly path: readonly [string] | readonly ['limits', string];
  readonly env: string;
  /** The flag's key in camel case, as a command-line parser hands it over: `natsUrl`. */
  readonly flag: string;
  /** How text becomes a value. `list`: separated by commas. */
  readonly kind: 'text' | 'number' | 'boolean' | 'list' | 'json';
  /** Never shown. */
  readonly secret: boolean;
  /** One line for `--help`, with the default. */
  readonly help: string;
}

function setting(kind: Setting['kind'], env: string, help: string, options?: Partial<Setting>): Setting {
  const words = env.slice(envPrefix.length).toLowerCase().split('_');
  const flag = words.map((w, i) => (i === 0 ? w : w.charAt(0).toUpperCase() + w.slice(1))).join('');
  return { path: [flag], env, flag, kind, secret: false, help, ...options };
}

function limit(env: string, key: string, help: string): Setting {
  return setting('number', env, help, { path: ['limits', key] });
}

export const settings: readonly Setting[] = [
  setting('text', 'TOPICAST_HOST', 'address to listen on (127.0.0.1)'),
  setting('number', 'TOPICAST_PORT', 'port to listen on; 0 takes any (8080)'),
  setting('list', 'TOPICAST_NATS_URL', 'NATS servers, comma-separated (none: the embedded engine)'),
  setting('list', 'TOPICAST_REDIS_URL', 'Redis Cluster nodes, comma-separated (none)'),
  setting('text', 'TOPICAST_NATS_CREDS', 'NATS credentials file (none)'),
  setting('text', 'TOPICAST_NATS_TLS_CA', 'certificate authorities for NATS over TLS, PEM (the system ones)'),
  setting('text', 'TOPICAST_PREFIX', 'prefix of NATS subjects and Redis keys: one tenant (tc)'),
  setting('text', 'TOPICAST_NODE_NAME', 'name of this node (the host name)'),
  setting('number', 'TOPICAST_WORKERS', 'processes that share the port (1)'),
  setting('text', 'TOPICAST_JWT_SECRET', 'shared secret that signs tokens', { secret: true }),
  setting('text', 'TOPICAST_JWT_PUBLIC_KEY_FILE', 'public key that checks tokens, PEM'),
  setting('text', 'TOPICAST_JWKS_URL', 'key set that checks tokens; needs an audience and an issuer'),
  setting('text', 'TOPICAST_JWT_AUDIENCE', 'audience that tokens must name (any)'),
  setting('text', 'TOPICAST_JWT_ISSUER', 'issuer that tokens must name (any)'),
  setting(
    'list',
    'TOPICAST_JWT_ALGORITHMS',
    'algorithms accepted (HS256, or RS*, PS*, ES*, EdDSA for public keys)',
  ),
  setting('text', 'TOPICAST_API_KEY', 'key with every right, for back ends', { secret: true }),
  setting(
    'list',
    'TOPICAST_ALLOWED_ORIGINS',
    'origins of browsers, comma-separated, or * (any, when access is configured)',
  ),
  setting('boolean', 'TOPICAST_ALLOW_QUERY_TOKEN', 'accept ?token= (true on the embedded engine only)'),
  setting('text', 'TOPICAST_TLS_CERT', 'certificate for TLS, PEM; with the key'),
  setting('text', 'TOPICAST_TLS_KEY', 'private key for TLS, PEM; with the certificate'),
  setting('number', 'TOPICAST_NATS_REPLICAS', 'copies of each stream, when there are as many servers (3)'),
  setting('number', 'TOPICAST_AUDIT_SEC', 'how often a node checks that it has missed nothing stored (15)'),
  setting('boolean', 'TOPICAST_INSECURE', 'listen on any address although no access is configured (false)'),
  setting('number', 'TOPICAST_CONNECT_RATE', 'new connections a second in the whole cluster (5000)'),
  setting('number', 'TOPICAST_CONNECTIONS_MAX', 'connections of this node; 0 has no limit (0)'),
  setting(
    'number',
    'TOPICAST_CONNECTIONS_PER_USER_MAX',
    'connections of one user on this node; 0 has no limit (0)',
  ),
  setting('text', 'TOPICAST_LOG_LEVEL', 'silent, fatal, error, warn, info, debug or trace (info)'),
  setting('json', 'TOPICAST_NAMESPACES', 'namespace settings, JSON, over those of coupon and item'),
  limit('TOPICAST_LIMIT_FRAME_BYTES', 'frameBytesMax', 'one frame from a client (65536)'),
  limit('TOPICAST_LIMIT_PAYLOAD_BYTES', 'payloadBytesMax', 'the data of one message (262144)'),
  limit('TOPICAST_LIMIT_TOPICS', 'topicsMax', 'topics of one connection (512)'),
  limit('TOPICAST_LIMIT_PATTERNS', 'patternsMax', 'patterns among them (64)'),
  limit('TOPICAST_LIMIT_TOKEN_BYTES', 'tokenBytesMax', 'one token (8192)'),
  limit('TOPICAST_LIMIT_HEADER_BYTES', 'headerBytesMax', 'the header block of a request (16384)'),
  limit('TOPICAST_LIMIT_BUFFER_BYTES', 'bufferBytesMax', 'waiting for one slow socket (1048576)'),
  limit('TOPICAST_LIMIT_FRAMES_PER_SEC', 'framesPerSecMax', 'frames a second from one connection (100)'),
  limit('TOPICAST_LIMIT_FRAMES_BURST', 'framesBurstMax', 'frames at once from one connection (200)'),
  setting('number', 'TOPICAST_PING_SEC', 'how often clients ping (30)'),
  setting('number', 'TOPICAST_IDLE_SEC', 'silence after which a connection is closed (180)'),
  setting('number', 'TOPICAST_SLOW_SEC', 'how long a slow reader may stay behind before it is closed (30)'),
  setting('number', 'TOPICAST_DRAIN_SEC', 'over how long connections are moved away on SIGTERM (10)'),
  setting('number', 'TOPICAST_EXPIRING_SEC', 'how long before its token ends a client is told (60)'),
  setting('number', 'TOPICAST_RING_MESSAGES', 'recent messages in memory per hosted durable topic (128)'),
  setting('number', 'TOPICAST_RING_BYTES', 'and their bytes (1048576)'),
  setting('number', 'TOPICAST_LINGER_MS', 'how long a topic stays hosted after its last subscriber (5000)'),
  setting('number', 'TOPICAST_STORE_BYTES', 'memory for stored messages of the embedded engine (268435456)'),
  setting('number', 'TOPICAST_DIRECT_TTL_SEC', 'how long a direct message waits for its user (604800)'),
  setting('number', 'TOPICAST_DIRECT_QUEUE_MAX', 'direct messages that may wait for one user (1000)'),
  setting(
    'number',
    'TOPICAST_METRICS_PORT',
    'a port of its own for /metrics (none: on the main port, with a grant)',
  ),
  setting('boolean', 'TOPICAST_CONSOLE', 'serve the console at / (true)'),
];
