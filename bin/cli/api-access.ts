import type { Config } from '../../config.ts';
import { type Api, apiClient } from './api-client.ts';
import { CommandError, type Options, UsageError } from './command.ts';
import { readSettings } from './settings.ts';

/** Of every action that asks the server. */
export const API_OPTIONS = {
  url: { value: 'URL', about: 'the server (default: TANDEM_URL, else PORT on this machine)' },
  key: { value: 'SK', about: 'the API key (default: TANDEM_API_KEY)' },
} as const satisfies Options;

/** @throws UsageError, ConfigError, or CommandError NO_API_KEY */
export function openApi({ url, key }: { url?: string; key?: string }): Api {
  if (url !== undefined && !/^https?:\/\/[^\s/?#]+(\/[^\s?#]*)?$/i.test(url)) {
    throw new UsageError(`--url takes an address such as http://127.0.0.1:8080, not ${JSON.stringify(url)}`);
  }
  const settings = url === undefined || key === undefined ? readSettings() : null;
  const apiKey = key ?? settings?.apiKey;
  if (!apiKey) {
    const message =
      'no API key: set TANDEM_API_KEY or give --key. tandem keys create makes one on the machine of the server.';
    throw new CommandError('NO_API_KEY', message);
  }
  return apiClient({ url: (url ?? serverUrl(settings!)).replace(/\/+$/, ''), apiKey });
}

/** Where a server with these settings is asked, from the machine it runs on. */
export function serverUrl({ url, host, port }: Pick<Config, 'url' | 'host' | 'port'>): string {
  return url ?? localUrl({ host, port });
}

/** Of the server that these settings start, whatever TANDEM_URL says. */
export function localUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port || 8080}`;
}
