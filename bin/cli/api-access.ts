import type { Config } from '../../config.ts';
import { type Api, apiClient } from './api-client.ts';
import { CommandError, type Options, UsageError } from './command.ts';
import type { CommandHost } from './host.ts';
import { readSettings } from './settings.ts';

/** Options of every action that calls the API. */
export const API_OPTIONS = {
  url: { value: 'URL', about: 'the server (default: TANDEM_URL, else PORT on this machine)' },
  key: { value: 'SK', about: 'the API key (default: TANDEM_API_KEY)' },
} as const satisfies Options;

/** @throws UsageError, ConfigError, or CommandError NO_API_KEY */
export function openApi(host: CommandHost, { url, key }: { url?: string; key?: string }): Api {
  if (url !== undefined && !/^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/i.test(url)) {
    throw new UsageError(`--url takes an address such as http://127.0.0.1:8080, not ${JSON.stringify(url)}`);
  }
  // Not printed, because it may be a mistyped key.
  if (key !== undefined && !/^[!-~]+$/.test(key)) {
    throw new UsageError('--key takes an API key, which consists of letters, digits, _ and -');
  }
  const settings = url === undefined || key === undefined ? readSettings(host) : null;
  const apiKey = key ?? settings?.apiKey;
  if (!apiKey) {
    const message =
      'no API key: set TANDEM_API_KEY or give --key. tandem keys create makes one on the machine of the server.';
    throw new CommandError('NO_API_KEY', message);
  }
  return apiClient({ url: (url ?? serverUrl(settings!)).replace(/\/+$/, ''), apiKey });
}

/** Address of the server with these settings, as seen from its own machine. */
export function serverUrl({ url, host, port }: Pick<Config, 'url' | 'host' | 'port'>): string {
  return url ?? localUrl({ host, port });
}

/** Address of a server started with these settings, ignoring TANDEM_URL. */
export function localUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port || 8080}`;
}
