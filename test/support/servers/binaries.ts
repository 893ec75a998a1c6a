export * from '../../../bench/servers/binaries.js';
