import { UsageError } from './cli/errors.js';
import { writeLine, type CliIo } from './cli/io.js';
import { startNode } from './compose.js';
import { ConfigError, loadConfig, printableConfig, type Config } from './config.js';
import { createLogger } from './log.js';
import { startWorkers } from './workers.js';

/**
 * Runs a node until a stop signal, then drains it. Standard output gets one line, when the node listens.
 * @param flags what the command line names, by camel-case name, with `config` and `printConfig`
 * @throws UsageError for settings that cannot be used
 */
export async function serve(flags: Readonly<Record<string, unknown>>, io: CliIo): Promise<void> {
  const config = readConfig(flags, io);
  if (flags['printConfig'] === true) {
    await writeLine(io.stdout, JSON.stringify(printableConfig(config), null, 2));
    return;
  }
  const log = createLogger(config.logLevel);
  const stopped = new Promise<void>((resolve) => io.onStopSignal(resolve));
  const node = config.workers > 1 ? await startWorkers(config, log) : await startNode(config, log);
  if (!config.authConfigured) {
    const who = config.insecure
      ? 'anybody who reaches this node has all rights'
      : 'open to this machine only';
    log.warn(`no secret, key or API key is set: ${who}`);
  }
  await writeLine(io.stdout, `listening ${node.url} node=${node.id} engine=${config.engine}`);
  await stopped;
  log.info('stopping: clients are moved away');
  await node.stop();
}

function readConfig(
  { config, printConfig: _, ...flags }: Readonly<Record<string, unknown>>,
  io: CliIo,
): Config {
  try {
    return loadConfig({ env: io.env, flags, ...(typeof config === 'string' && { file: config }) });
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.message);
    throw error;
  }
}
