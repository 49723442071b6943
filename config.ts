import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { parseEnv } from 'node:util';
import type { Variable } from './setting-kinds.ts';
import { VARIABLES } from './settings.ts';

/**
 * Reads all settings from the environment, then from a `.env` file. An empty value counts as unset.
 * @throws ConfigError with one line that names the first unknown or malformed variable or argument
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

/** Every parsed setting, by name. The table in `settings.ts` has type, default and meaning. */
export type Config = {
  readonly [Key in keyof typeof VARIABLES]: (typeof VARIABLES)[Key] extends Variable<infer Value> ? Value : never;
};

/** Applies a function to each setting that is a path. */
export function mapPaths(config: Config, map: (path: string) => string): Config {
  const table: Readonly<Record<string, Variable<unknown>>> = VARIABLES;
  const mapped = Object.entries(config).map(([key, value]) => {
    return [key, table[key]?.isPath && typeof value === 'string' ? map(value) : value];
  });
  return Object.fromEntries(mapped) as Config;
}

/** One line for the operator: the variable, and which values are valid. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Whether the arguments include `--help` or an alias of it. */
export function wantsHelp(argv: readonly string[]): boolean {
  return argv.some((argument) => HELP_ARGUMENTS.has(argument));
}

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

const HELP_ARGUMENTS = new Set(['--help', '-h']);
/** Environment variables with this prefix belong to Tandem, so an unknown one is an error. */
const OWN_PREFIX = /^TANDEM_/i;
/** Prefixes of Tandem's own names in `.env`. An unknown name with one of them is an error. */
const DOT_ENV_PREFIX =
  /^(TANDEM|DRACHTIO|SIP|RTP|MEDIA|STT|TTS|MODELS|LLM|EMBEDDINGS|MEMORY|S3|CALLBACK|CORS|TRUSTED|LIMITS|STRIPE|LOG|RECORDING|RETENTION|NUMBER|TRUNK|QUOTA|DAILY|BLOCKED|DESTINATION|METRICS|PLACEMENTS|WEBRTC|HEP)_/i;

/** docker-compose.yml reads these names from the same `.env` file. */
const COMPOSE_NAMES = ['TANDEM_DOMAIN'];

/** Bytes that are not UTF-8 become U+FFFD; UTF-16 has NUL. Comments may have any encoding. */
const NOT_UTF8 = /[\0\uFFFD]/;

function requireKnownArguments(argv: readonly string[]): void {
  const unknown = argv.find((argument) => !HELP_ARGUMENTS.has(argument));
  if (unknown !== undefined) throw new ConfigError(`Unknown argument ${quote(unknown)}: the only one is --help.`);
}

function readDotEnv(path: string): Record<string, string | undefined> {
  try {
    // Also removes a byte order mark, which would hide the first setting.
    const text = new TextDecoder().decode(readFileSync(path));
    const settings = parseEnv(text);
    if (NOT_UTF8.test(Object.entries(settings).flat().join(' '))) throw new Error('save it as UTF-8');
    requireEqualsSigns(text);
    return settings;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new ConfigError(`${path} cannot be read: ${(error as Error).message}`);
  }
}

/** `parseEnv` skips a line such as `PORT: 9001`. */
function requireEqualsSigns(text: string): void {
  const lines = text.split('\n');
  const known = knownNames();
  for (const [index, line] of lines.entries()) {
    const [, name = ''] = /^\s*(?:export\s+)?(\w+)(?:\s*:|\s+[^\s=])/.exec(line) ?? [];
    const setting = name.toUpperCase();
    if (!known.includes(setting)) continue;
    // A setting added here becomes text if the line belongs to a value in quotes.
    const isOutside = '?' in parseEnv(lines.toSpliced(index, 0, '?=').join('\n'));
    if (isOutside) throw new Error(`line ${index + 1} must be ${setting}=VALUE`);
  }
}

function knownNames(): string[] {
  return [...Object.values(VARIABLES).map(({ name }) => name), ...COMPOSE_NAMES];
}

function refuseUnknownNames(env: Readonly<Record<string, unknown>>, dotEnv: Readonly<Record<string, unknown>>): void {
  const known = knownNames();
  const isOwn = (name: string) => DOT_ENV_PREFIX.test(name) || known.includes(name.toUpperCase());
  const unknown =
    Object.keys(env).find((name) => OWN_PREFIX.test(name) && !known.includes(name)) ??
    Object.keys(dotEnv).find((name) => isOwn(name) && !known.includes(name));
  if (unknown === undefined) return;
  const inCapitals = unknown.toUpperCase();
  const sameWords = (name: string) => name.replaceAll('_', '') === inCapitals.replaceAll('_', '');
  const family = known.filter((name) => name.split('_')[0] === inCapitals.split('_')[0]);
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
  if (config.drachtioHost !== null && isIP(config.sipHost) !== 4) {
    throw new ConfigError(
      `SIP_HOST must be an IPv4 address when DRACHTIO_HOST is set (got ${quote(config.sipHost)}): drachtio-server takes no names as --external-ip.`,
    );
  }
  requireWholeS3(config);
}

function requireWholeS3(config: Config): void {
  const { s3Bucket, s3Endpoint, s3PublicEndpoint, s3Prefix, s3AccessKeyId, s3SecretAccessKey } = config;
  if ((s3AccessKeyId === null) !== (s3SecretAccessKey === null)) {
    throw new ConfigError('S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set together.');
  }
  const isMeant = [s3Endpoint, s3PublicEndpoint, s3Prefix, s3AccessKeyId].some((value) => value);
  if (isMeant && s3Bucket === null) {
    throw new ConfigError('S3_BUCKET must be set when other S3_ settings are: without it, objects stay in a folder.');
  }
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
}
