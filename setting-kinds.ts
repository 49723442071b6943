import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { CountryCode } from 'libphonenumber-js/core';
import metadata from 'libphonenumber-js/min/metadata';

export interface Variable<Value> {
  name: string;
  about: string;
  /** Completes the sentence "<NAME> must be ...". */
  expects: string;
  shownDefault: string;
  /** Errors never repeat the value of a secret. */
  secret: boolean;
  /** Whether it is the path of a file or folder. */
  isPath?: true;
  fallback: Value;
  /** Returns undefined for malformed text. */
  parse: (text: string) => Value | undefined;
}

// The kinds of variables ----------------------------------------------------------------------------------------------

export function optional<Value>(
  name: string,
  rest: { about: string; expects: string; parse: (text: string) => Value | undefined; secret?: boolean },
): Variable<Value | null> {
  return { secret: false, ...rest, name, shownDefault: 'unset', fallback: null };
}

export function optionalText(name: string, about: string): Variable<string | null> {
  return optional(name, { about, expects: '1 to 1024 characters on one line', parse: parseText });
}

export function optionalPath(name: string, about: string): Variable<string | null> {
  return { ...optionalText(name, about), isPath: true };
}

/** API key of an external server. */
export function keyVariable(name: string): Variable<string | null> {
  const parse = (text: string) => (/^\S{1,1024}$/.test(text) ? text : undefined);
  return optional(name, {
    about: 'API key of that server.',
    expects: '1 to 1024 characters without spaces',
    secret: true,
    parse,
  });
}

export function textVariable(name: string, fallback: string, about: string): Variable<string> {
  return { ...optionalText(name, about), shownDefault: fallback, fallback } as Variable<string>;
}

export function pathVariable(name: string, fallback: string, about: string): Variable<string> {
  return { ...textVariable(name, fallback, about), isPath: true };
}

export function hostVariable(name: string, fallback: string, about: string): Variable<string> {
  return {
    name,
    about,
    expects: 'a host name or IP address',
    shownDefault: fallback,
    secret: false,
    fallback,
    parse: parseHost,
  };
}

export function integerVariable(
  name: string,
  {
    fallback,
    min,
    max,
    shownDefault = String(fallback),
  }: { fallback: number; min: number; max: number; shownDefault?: string },
  about: string,
): Variable<number> {
  const parse = (text: string) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : undefined;
  };
  return { name, about, expects: `an integer from ${min} to ${max}`, shownDefault, secret: false, fallback, parse };
}

export function choiceVariable<Choice extends string>(
  name: string,
  choices: readonly [Choice, ...Choice[]],
  about: string,
  fallback: Choice = choices[0],
): Variable<Choice> {
  const parse = (text: string) => choices.find((choice) => choice === text);
  return {
    name,
    about,
    expects: `one of ${choices.join(', ')}`,
    shownDefault: fallback,
    secret: false,
    fallback,
    parse,
  };
}

/** URL without trailing slashes. It may contain a password, so it is secret. */
export function urlVariable(name: string, protocols: readonly string[], about: string): Variable<string | null> {
  const schemes = protocols.map((protocol) => `${protocol}//`).join(' or ');
  const parse = (text: string) => {
    const url = URL.canParse(text) ? new URL(text) : null;
    return url && protocols.includes(url.protocol) && url.hostname !== '' ? text.replace(/\/+$/, '') : undefined;
  };
  return optional(name, { about, expects: `a URL that starts with ${schemes}`, parse, secret: true });
}

/** http URL to which paths are appended. It is not secret. */
export function originVariable(name: string, about: string): Variable<string | null> {
  const variable = urlVariable(name, ['http:', 'https:'], about);
  const parse = (text: string) => (/[?#@]/.test(text) ? undefined : variable.parse(text));
  return { ...variable, expects: `${variable.expects}, without user, query and fragment`, parse };
}

// Parsers: undefined means malformed ----------------------------------------------------------------------------------

/** Parses a header in W3C Baggage format, which OpenTelemetry uses. */
export function parseHeader(text: string): [name: string, value: string] | undefined {
  const [, name, encoded] = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+)=([!-~]+)$/.exec(text) ?? [];
  try {
    const value = decodeURIComponent(encoded ?? '');
    return name !== undefined && /^[ -~]+$/.test(value) ? [name, value] : undefined;
  } catch {
    return undefined;
  }
}

export function parseHost(text: string): string | undefined {
  return isIP(text) !== 0 || /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(text) ? text : undefined;
}

function parseText(text: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: rejects control characters
  return text.length <= 1024 && !/[\u0000-\u001f]/.test(text) ? text : undefined;
}

export function isProxy(text: string): boolean {
  return text === 'loopback' || text === 'uniquelocal' || isIP(text) !== 0 || ipaddr.isValidCIDR(text);
}

/** Whether the text is an origin exactly as browsers send it: lower case, without path and trailing slash. */
export function isOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:') && url.origin === text;
}

export function parseKey(text: string): Buffer | undefined {
  // Node ignores characters that are not base64, so check the text first.
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined;
  const key = Buffer.from(text, 'base64');
  return key.length === 32 ? key : undefined;
}

/** Parses `name=model` pairs. Only the model may contain `=`. Rejects repeated names and aliases of aliases. */
export function parseAliases(text: string): Map<string, string> | undefined {
  const pairs = text.split(',').map((item) => /^([\w.:/-]{1,128})\s*=\s*([^\s,]{1,256})$/.exec(item.trim()));
  const aliases = new Map<string, string>();
  for (const pair of pairs) {
    const [, name, model] = pair ?? [];
    if (name === undefined || model === undefined || aliases.has(name)) return undefined;
    aliases.set(name, model);
  }
  const standsForName = ([name, model]: [string, string]) =>
    model !== name && (aliases.has(model) || OF_OURS.has(model));
  return [...aliases].some(standsForName) ? undefined : aliases;
}

/** Returns nano-dollars. */
export function parseUsd(text: string): bigint | undefined {
  const [, whole, fraction = ''] = /^(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  return whole === undefined ? undefined : BigInt(whole + fraction.padEnd(9, '0'));
}

/** Parses `+91:60`. */
export function parseDestinationLimit(text: string): { prefix: string; callsPerMinute: number } | undefined {
  const [, prefix, count] = /^(\+[1-9]\d{0,14}):(\d{1,5})$/.exec(text) ?? [];
  const callsPerMinute = Number(count);
  return prefix !== undefined && callsPerMinute >= 1 && callsPerMinute <= 10_000
    ? { prefix, callsPerMinute }
    : undefined;
}

export type PlanName = 'free' | 'starter' | 'pro' | 'enterprise';

/** Parses `60`, for every plan, or `pro:60,enterprise:600`. Missing plans get `fallback`. */
export function parsePlanLimits(text: string, fallback: number): Record<PlanName, number> | undefined {
  const ofEvery = countOf(text);
  const limits = { free: fallback, starter: fallback, pro: fallback, enterprise: fallback };
  if (ofEvery !== undefined) return { free: ofEvery, starter: ofEvery, pro: ofEvery, enterprise: ofEvery };
  for (const item of text.split(',')) {
    const [, plan, count = ''] = /^\s*(free|starter|pro|enterprise):(\d+)\s*$/.exec(item) ?? [];
    const limit = countOf(count);
    if (plan === undefined || limit === undefined) return undefined;
    limits[plan as PlanName] = limit;
  }
  return limits;
}

/** Accepts 1 to 100000. */
function countOf(text: string): number | undefined {
  const count = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  return count >= 1 && count <= 100_000 ? count : undefined;
}

/** Parses `host:port`, with IPv6 addresses in brackets. */
export function parseHostPort(text: string): { host: string; port: number } | undefined {
  const [, name = '', digits] = /^(\[[^\]]+\]|[^:]+):(\d{1,5})$/.exec(text) ?? [];
  const host = parseHost(name.replace(/^\[|\]$/g, ''));
  const port = Number(digits);
  return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

/** Parses a percentage: `all` is 100, `off` is 0. */
export function parseShare(text: string): number | undefined {
  if (text === 'all') return 100;
  if (text === 'off') return 0;
  return /^[1-9]\d?%$/.test(text) ? Number.parseInt(text, 10) : undefined;
}

/** Accepts only country codes that libphonenumber knows: `UK` is a mistake for `GB`. */
export function parseNumberPlan(text: string): 'any' | CountryCode[] | undefined {
  if (text.toLowerCase() === 'any') return 'any';
  const isCountry = (code: string): code is CountryCode => Object.hasOwn(metadata.countries, code);
  return parseList(text.toUpperCase(), (item) => (isCountry(item) ? item : undefined));
}

const OF_OURS: ReadonlySet<string> = new Set(['svc-tiny', 'jev-latest']);

export function parseList<Item>(text: string, parseItem: (item: string) => Item | undefined): Item[] | undefined {
  const items = text.split(',').map((item) => parseItem(item.trim()));
  return items.every((item) => item !== undefined) ? [...new Set(items as Item[])] : undefined;
}
