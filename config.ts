import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { parseEnv } from 'node:util';
import ipaddr from 'ipaddr.js';

/**
 * Reads the whole configuration from the environment and, where that is silent, from a `.env` file. An empty value
 * counts as unset.
 * @throws ConfigError with one line naming the first variable (or argument) that is unknown or malformed.
 */
export function loadConfig(
  env: Readonly<Record<string, string | undefined>>,
  argv: readonly string[] = [],
  dotEnvPath = '.env',
): Config {
  requireKnownArguments(argv);
  const dotEnv = readDotEnv(dotEnvPath);
  refuseUnknownNames(env, dotEnv);
  const table: [string, Variable<unknown>][] = Object.entries(VARIABLES);
  const entries = table.map(([key, variable]) => [
    key,
    readValue(variable, env[variable.name] || dotEnv[variable.name] || ''),
  ]);
  const config = Object.fromEntries(entries) as Config;
  requireConsistent(config);
  return config;
}

/** Every setting under its own name, parsed. The table below tells type, default and meaning. */
export type Config = {
  readonly [Key in keyof typeof VARIABLES]: (typeof VARIABLES)[Key] extends Variable<infer Value> ? Value : never;
};

/** One line for a person: which variable, and what would be right. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Whether the command line asks for `describeConfig()` instead of a start. */
export function wantsHelp(argv: readonly string[]): boolean {
  return argv.some((argument) => HELP_ARGUMENTS.has(argument));
}

/** What `npm start -- --help` prints. */
export function describeConfig(): string {
  const variables: Variable<unknown>[] = Object.values(VARIABLES);
  const width = Math.max(...variables.map(({ name }) => name.length)) + 2;
  const lines = variables.map(
    ({ name, about, shownDefault, expects }) =>
      `  ${name.padEnd(width)}${about}\n  ${' '.repeat(width)}${expects}; default: ${shownDefault}`,
  );
  return [
    'Tandem: a self-hosted voice, language and telephony platform.',
    '',
    'Usage: npm start [-- --help]',
    '',
    'All settings are environment variables and optional. A .env file in the working directory is read as well; the',
    'environment wins over it.',
    '',
    ...lines,
    '',
  ].join('\n');
}

interface Variable<Value> {
  name: string;
  about: string;
  /** Completes the sentence "<NAME> must be ...". */
  expects: string;
  shownDefault: string;
  /** Its value is never repeated in an error. */
  secret: boolean;
  fallback: Value;
  parse: (text: string) => Value | undefined;
}

const VARIABLES = {
  host: hostVariable('HOST', '127.0.0.1', 'Address the HTTP server listens on.'),
  port: integerVariable('PORT', { fallback: 8080, min: 0, max: 65_535 }, 'Port of the HTTP server; 0 takes any.'),
  dataDir: textVariable('TANDEM_DATA_DIR', './.data', 'Folder of the embedded database, recordings and keys.'),
  publicUrl: originVariable('TANDEM_PUBLIC_URL', 'Address clients reach this server by.'),
  url: originVariable('TANDEM_URL', 'Server that the command line talks to; PORT on this machine when unset.'),
  ownerEmail: optional('TANDEM_OWNER_EMAIL', {
    about: 'E-mail of the first owner.',
    expects: 'an e-mail address',
    parse: (text) => (/^[^\s@]+@[^\s@]+$/.test(text) && text.length <= 254 ? text.toLowerCase() : undefined),
  }),
  ownerPassword: optional('TANDEM_OWNER_PASSWORD', {
    about: 'Password of the first owner.',
    expects: '8 to 256 characters',
    secret: true,
    parse: (text) => (text.length >= 8 && text.length <= 256 ? text : undefined),
  }),
  apiKey: optional('TANDEM_API_KEY', {
    about: 'The first owner key; minted and printed once when unset.',
    expects: 'sk_ followed by 16 to 200 of A-Z a-z 0-9 _ -',
    secret: true,
    parse: (text) => (/^sk_[A-Za-z0-9_-]{16,200}$/.test(text) ? text : undefined),
  }),
  secretKey: optional('TANDEM_SECRET_KEY', {
    about: 'Key that seals stored secrets; made and kept in the data folder when unset.',
    expects: '32 bytes in base64',
    secret: true,
    parse: parseKey,
  }),
  previousSecretKeys: {
    name: 'TANDEM_SECRET_KEY_PREVIOUS',
    about: 'Earlier values of TANDEM_SECRET_KEY: what they sealed is opened, and sealed again at the start.',
    expects: 'a comma-separated list of 32 bytes in base64',
    shownDefault: 'none',
    secret: true,
    fallback: [],
    parse: (text) => parseList(text, parseKey),
  } as Variable<readonly Buffer[]>,
  databaseUrl: urlVariable('DATABASE_URL', ['postgres:', 'postgresql:'], 'Postgres 15 or newer; embedded when unset.'),
  redisUrl: urlVariable('REDIS_URL', ['redis:', 'rediss:'], 'Redis for jobs, limits and several nodes.'),
  drachtioHost: optional('DRACHTIO_HOST', {
    about: 'A drachtio server; the embedded SIP server when unset.',
    expects: 'a host name or IP address',
    parse: parseHost,
  }),
  drachtioPort: integerVariable('DRACHTIO_PORT', { fallback: 9022, min: 1, max: 65_535 }, 'Its admin port.'),
  drachtioSecret: optional('DRACHTIO_SECRET', {
    about: 'Its shared secret.',
    expects: '1 to 256 characters without spaces',
    secret: true,
    parse: (text) => (/^\S{1,256}$/.test(text) ? text : undefined),
  }),
  sipHost: hostVariable('SIP_HOST', '127.0.0.1', 'Address of the embedded SIP server, as carriers reach it.'),
  sipPort: integerVariable('SIP_PORT', { fallback: 5060, min: 0, max: 65_535 }, 'Its port; 0 takes any.'),
  sipTransports: {
    name: 'SIP_TRANSPORTS',
    about: 'Transports of the embedded SIP server.',
    expects: 'a comma-separated list of udp and tcp',
    shownDefault: 'udp,tcp',
    secret: false,
    fallback: ['udp', 'tcp'],
    parse: (text) => parseList(text, (item) => (item === 'udp' || item === 'tcp' ? item : undefined)),
  } as Variable<readonly ('udp' | 'tcp')[]>,
  rtpHost: {
    ...hostVariable('RTP_HOST', '127.0.0.1', 'IP address put into SDP: where carriers send audio.'),
    expects: 'an IP address',
    parse: (text: string) => (isIP(text) === 0 ? undefined : text),
  },
  rtpPortMin: integerVariable('RTP_PORT_MIN', { fallback: 20_000, min: 1024, max: 65_532 }, 'First RTP port, even.'),
  rtpPortMax: integerVariable('RTP_PORT_MAX', { fallback: 29_999, min: 1027, max: 65_535 }, 'Last RTP port.'),
  mediaWorkers: integerVariable(
    'MEDIA_WORKERS',
    { fallback: Math.max(1, availableParallelism() - 1), min: 1, max: 256, shownDefault: 'cores - 1, at least 1' },
    'Threads that carry audio.',
  ),
  sttEngine: choiceVariable(
    'STT_ENGINE',
    ['auto', 'pocketsphinx', 'sherpa-onnx', 'openai'],
    'Speech recogniser that is asked first; auto takes the best that is there for the language.',
  ),
  sttProcesses: integerVariable(
    'STT_PROCESSES',
    { fallback: availableParallelism(), min: 1, max: 256, shownDefault: 'cores' },
    'Recognisers that run side by side, a process each.',
  ),
  sttBaseUrl: urlVariable('STT_BASE_URL', ['http:', 'https:'], 'OpenAI-compatible server for transcription.'),
  sttApiKey: optional('STT_API_KEY', {
    about: 'Its key.',
    expects: '1 to 1024 characters without spaces',
    secret: true,
    parse: (text) => (/^\S{1,1024}$/.test(text) ? text : undefined),
  }),
  sttModel: optionalText('STT_MODEL', 'Model to ask it for.'),
  ttsProcesses: integerVariable(
    'TTS_PROCESSES',
    { fallback: availableParallelism(), min: 1, max: 256, shownDefault: 'cores' },
    'Synthesisers that run side by side, a process each.',
  ),
  ttsEngine: choiceVariable(
    'TTS_ENGINE',
    ['auto', 'espeak-ng', 'sherpa-onnx', 'openai'],
    'Speech synthesiser whose voice is the usual one of a language; auto takes the best that is there.',
  ),
  ttsBaseUrl: urlVariable('TTS_BASE_URL', ['http:', 'https:'], 'OpenAI-compatible server for speech.'),
  ttsApiKey: optional('TTS_API_KEY', {
    about: 'Its key.',
    expects: '1 to 1024 characters without spaces',
    secret: true,
    parse: (text) => (/^\S{1,1024}$/.test(text) ? text : undefined),
  }),
  ttsModel: optionalText('TTS_MODEL', 'Model to ask it for.'),
  ttsCacheMb: integerVariable(
    'TTS_CACHE_MB',
    { fallback: 256, min: 0, max: 1_048_576 },
    'Most disk space for speech that is kept to be said again; 0 keeps none.',
  ),
  modelsDir: textVariable('MODELS_DIR', './.data/models', 'Folder of speech and language models.'),
  llmBaseUrl: urlVariable('LLM_BASE_URL', ['http:', 'https:'], 'OpenAI-compatible server for chat and judging.'),
  llmApiKey: optional('LLM_API_KEY', {
    about: 'Its key.',
    expects: '1 to 1024 characters without spaces',
    secret: true,
    parse: (text) => (/^\S{1,1024}$/.test(text) ? text : undefined),
  }),
  llmModel: optionalText('LLM_MODEL', 'Model to ask it for.'),
  llmModelPath: optionalText('LLM_MODEL_PATH', 'A local GGUF model instead of a server.'),
  embeddingsBaseUrl: urlVariable('EMBEDDINGS_BASE_URL', ['http:', 'https:'], 'OpenAI-compatible embeddings server.'),
  s3Endpoint: urlVariable(
    'S3_ENDPOINT',
    ['http:', 'https:'],
    'S3-compatible store for recordings; a folder when unset.',
  ),
  s3Region: optionalText('S3_REGION', 'Its region.'),
  s3Bucket: optionalText('S3_BUCKET', 'Its bucket.'),
  s3AccessKeyId: { ...optionalText('S3_ACCESS_KEY_ID', 'Its access key id.'), secret: true },
  s3SecretAccessKey: { ...optionalText('S3_SECRET_ACCESS_KEY', 'Its secret access key.'), secret: true },
  callbackAllowCidrs: {
    name: 'CALLBACK_ALLOW_CIDRS',
    about: 'Private networks that callback and webhook URLs may point to all the same, over plain http too.',
    expects: 'a comma-separated list of networks such as 10.0.0.0/8',
    shownDefault: 'none',
    secret: false,
    fallback: [],
    parse: (text) => parseList(text, (item) => (ipaddr.isValidCIDR(item) ? item : undefined)),
  } as Variable<readonly string[]>,
  corsOrigins: {
    name: 'CORS_ORIGINS',
    about: 'Web sites whose pages may use the API in a browser.',
    expects: 'a comma-separated list of origins such as https://console.example.com, or *',
    shownDefault: 'none',
    secret: false,
    fallback: [],
    parse: (text) => parseList(text, (item) => (item === '*' || isOrigin(item) ? item : undefined)),
  } as Variable<readonly string[]>,
  trustedProxies: {
    name: 'TRUSTED_PROXIES',
    about: 'Reverse proxies whose X-Forwarded-For and X-Forwarded-Proto are believed.',
    expects: 'a comma-separated list of addresses, networks such as 10.0.0.0/8, loopback and uniquelocal',
    shownDefault: 'loopback',
    secret: false,
    fallback: ['loopback'],
    parse: (text) => parseList(text, (item) => (isProxy(item) ? item : undefined)),
  } as Variable<readonly string[]>,
  enterprisePerMinute: integerVariable(
    'LIMITS_ENTERPRISE_PER_MINUTE',
    { fallback: 6_000, min: 1, max: 999_999_999 },
    'Requests a workspace on the enterprise plan may make in a minute.',
  ),
  enterprisePerDay: integerVariable(
    'LIMITS_ENTERPRISE_PER_DAY',
    { fallback: 1_000_000, min: 1, max: 999_999_999 },
    'Requests it may make in a day.',
  ),
  stripeWebhookSecret: optional('STRIPE_WEBHOOK_SECRET', {
    about: "Signing secret of Stripe's endpoint for POST /billing/stripe/webhook; without it nobody pays by Stripe.",
    expects: 'whsec_ followed by letters and digits',
    secret: true,
    parse: (text) => (/^whsec_[A-Za-z0-9+/=_-]{8,256}$/.test(text) ? text : undefined),
  }),
  logLevel: choiceVariable(
    'LOG_LEVEL',
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    'Least severe messages to log.',
    'info',
  ),
};

const HELP_ARGUMENTS = new Set(['--help', '-h']);
/** Names in the environment that can only be meant for us. */
const OWN_PREFIX = /^TANDEM_/;
/** Names in `.env`, a file written for us, that can only be meant for us. */
const DOT_ENV_PREFIX =
  /^(TANDEM|DRACHTIO|SIP|RTP|MEDIA|STT|TTS|MODELS|LLM|EMBEDDINGS|S3|CALLBACK|CORS|TRUSTED|LIMITS|STRIPE|LOG)_/;

function requireKnownArguments(argv: readonly string[]): void {
  const unknown = argv.find((argument) => !HELP_ARGUMENTS.has(argument));
  if (unknown !== undefined) throw new ConfigError(`Unknown argument ${quote(unknown)}: the only one is --help.`);
}

function readDotEnv(path: string): Record<string, string | undefined> {
  try {
    return parseEnv(readFileSync(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new ConfigError(`${path} cannot be read: ${(error as Error).message}`);
  }
}

function refuseUnknownNames(env: Readonly<Record<string, unknown>>, dotEnv: Readonly<Record<string, unknown>>): void {
  const known = Object.values(VARIABLES).map(({ name }) => name);
  const unknown =
    Object.keys(env).find((name) => OWN_PREFIX.test(name) && !known.includes(name)) ??
    Object.keys(dotEnv).find((name) => DOT_ENV_PREFIX.test(name) && !known.includes(name));
  if (unknown === undefined) return;
  const sameWords = (name: string) =>
    name.replaceAll('_', '').toUpperCase() === unknown.replaceAll('_', '').toUpperCase();
  const family = known.filter((name) => name.split('_')[0] === unknown.split('_')[0]);
  const meant = known.filter(sameWords);
  const candidates = (meant.length > 0 ? meant : family).join(', ') || 'listed by --help';
  throw new ConfigError(`${unknown} is not a setting; those that exist are ${candidates}.`);
}

function readValue<Value>(variable: Variable<Value>, text: string): Value {
  if (text === '') return variable.fallback;
  const value = variable.parse(variable.secret ? text : text.trim());
  if (value !== undefined) return value;
  const got = variable.secret ? '' : ` (got ${quote(text)})`;
  throw new ConfigError(`${variable.name} must be ${variable.expects}${got}.`);
}

function requireConsistent(config: Config): void {
  if (config.rtpPortMin % 2 !== 0) {
    throw new ConfigError(`RTP_PORT_MIN must be even (got ${config.rtpPortMin}): RTP takes even ports, RTCP the next.`);
  }
  // Two legs of one call, an RTP and an RTCP port each.
  if (config.rtpPortMax < config.rtpPortMin + 3) {
    throw new ConfigError(
      `RTP_PORT_MAX must be at least RTP_PORT_MIN + 3 = ${config.rtpPortMin + 3} (got ${config.rtpPortMax}).`,
    );
  }
  if (config.drachtioHost !== null && config.drachtioSecret === null) {
    throw new ConfigError('DRACHTIO_SECRET must be set when DRACHTIO_HOST is: the server asks for it.');
  }
}

// The kinds of variables ----------------------------------------------------------------------------------------------

function optional<Value>(
  name: string,
  rest: { about: string; expects: string; parse: (text: string) => Value | undefined; secret?: boolean },
): Variable<Value | null> {
  return { secret: false, ...rest, name, shownDefault: 'unset', fallback: null };
}

function optionalText(name: string, about: string): Variable<string | null> {
  return optional(name, { about, expects: '1 to 1024 characters on one line', parse: parseText });
}

function textVariable(name: string, fallback: string, about: string): Variable<string> {
  return { ...optionalText(name, about), shownDefault: fallback, fallback } as Variable<string>;
}

function hostVariable(name: string, fallback: string, about: string): Variable<string> {
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

function integerVariable(
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

function choiceVariable<Choice extends string>(
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

/** URLs may carry a password, so they count as secret. The text is kept without a slash at its end. */
function urlVariable(name: string, protocols: readonly string[], about: string): Variable<string | null> {
  const schemes = protocols.map((protocol) => `${protocol}//`).join(' or ');
  const parse = (text: string) => {
    const url = URL.canParse(text) ? new URL(text) : null;
    return url && protocols.includes(url.protocol) && url.hostname !== '' ? text.replace(/\/+$/, '') : undefined;
  };
  return optional(name, { about, expects: `a URL that starts with ${schemes}`, parse, secret: true });
}

/** An http URL that paths are put behind. Everybody may see it. */
function originVariable(name: string, about: string): Variable<string | null> {
  const variable = urlVariable(name, ['http:', 'https:'], about);
  const parse = (text: string) => (/[?#@]/.test(text) ? undefined : variable.parse(text));
  return { ...variable, expects: `${variable.expects}, without user, query and fragment`, parse };
}

// Parsers: undefined means malformed ----------------------------------------------------------------------------------

function parseHost(text: string): string | undefined {
  return isIP(text) !== 0 || /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(text) ? text : undefined;
}

function parseText(text: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  return text.length <= 1024 && !/[\u0000-\u001f]/.test(text) ? text : undefined;
}

function isProxy(text: string): boolean {
  return text === 'loopback' || text === 'uniquelocal' || isIP(text) !== 0 || ipaddr.isValidCIDR(text);
}

/** Exactly as a browser sends it: no path, no slash at the end, in lower case. */
function isOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:') && url.origin === text;
}

function parseKey(text: string): Buffer | undefined {
  // Node skips over characters that are not base64, so the text is checked first.
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined;
  const key = Buffer.from(text, 'base64');
  return key.length === 32 ? key : undefined;
}

function parseList<Item>(text: string, parseItem: (item: string) => Item | undefined): Item[] | undefined {
  const items = text.split(',').map((item) => parseItem(item.trim()));
  return items.every((item) => item !== undefined) ? [...new Set(items as Item[])] : undefined;
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
}
