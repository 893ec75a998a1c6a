import { Option } from 'commander';

/**
 * The flags of `serve`: the common settings, each under the name that it has in the environment
 * (`--nats-url`, `TOPICAST_NATS_URL`). Their values stay text and have no defaults here: the settings are
 * checked in one place, whatever their source.
 */
export function serveOptions(): Option[] {
  return [
    new Option('--config <file>', 'settings as a JSON file'),
    new Option('--print-config', 'print the settings in force, secrets masked, and end'),
    new Option('--host <address>', 'address to listen on (default: 127.0.0.1)'),
    new Option('--port <port>', 'port to listen on; 0: any that is free (default: 8080)'),
    new Option('--node-name <name>', 'first part of the node id'),
    new Option('--nats-url <urls>', 'NATS servers, comma-separated; none: embedded, a single node'),
    new Option('--redis-url <urls>', 'Redis Cluster nodes, comma-separated; none: embedded'),
    new Option('--prefix <prefix>', 'of NATS subjects and Redis keys (default: tc)'),
    new Option('--jwt-secret <secret>', 'shared secret of tokens (others on this machine can see flags)'),
    new Option('--jwt-public-key-file <file>', 'public key of tokens, PEM'),
    new Option('--jwks-url <url>', 'key set of tokens'),
    new Option('--api-key <key>', 'key of back ends (others on this machine can see flags)'),
    new Option('--allowed-origins <origins>', 'origins of browser clients, comma-separated'),
    new Option('--tls-cert <file>', 'certificate, PEM'),
    new Option('--tls-key <file>', 'private key, PEM'),
    new Option('--workers <n>', 'nodes to run on this port'),
    new Option('--connect-rate <n>', 'new connections a second in the whole cluster (default: 5000)'),
    new Option('--namespaces <json>', 'settings of namespaces, JSON'),
    new Option('--log-level <level>', 'silent, fatal, error, warn, info, debug or trace'),
  ];
}
