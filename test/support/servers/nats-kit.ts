export * from '../../../bench/servers/nats-kit.js';
