import { Option } from 'commander';
import { settings, type Setting } from '../config-settings.js';
import { flagName } from '../config-sources.js';

/**
 * The flags of `serve`: every setting, under the name that it has in the environment (`--nats-url`,
 * `TOPICAST_NATS_URL`). Their values stay text and have no defaults here: settings are checked in one place,
 * whatever their source.
 */
export function serveOptions(): Option[] {
  return [
    new Option('--config <file>', 'settings as a JSON file (else TOPICAST_CONFIG)'),
    new Option('--print-config', 'print the settings in force, secrets masked, and end'),
    ...settings.map(optionOf),
  ];
}

function optionOf({ flag, kind, secret, help }: Setting): Option {
  const value = { text: '<text>', number: '<n>', boolean: '[true|false]', list: '<a,b>', json: '<json>' }[
    kind
  ];
  const warning = secret ? '; others on this machine can see flags' : '';
  return new Option(`${flagName(flag)} ${value}`, `${help}${warning}`);
}
