export * from '../../../bench/servers/redis-kit.js';
