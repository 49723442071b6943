import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError, describeConfig, loadConfig, mapPaths, wantsHelp } from '../config.ts';
import type { Variable } from '../setting-kinds.ts';
import { VARIABLES } from '../settings.ts';

const NO_FILE = '/nonexistent/.env';
const load = (env: Record<string, string | undefined>, argv: string[] = []) => loadConfig(env, argv, NO_FILE);

function refusal(env: Record<string, string>, argv: string[] = []): string {
  try {
    load(env, argv);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).message;
  }
  return expect.fail('the configuration was accepted');
}

describe('loadConfig', () => {
  it('defines a default for everything', () => {
    const config = load({});
    expect(config).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      dataDir: './.data',
      publicUrl: null,
      apiKey: null,
      secretKey: null,
      databaseUrl: null,
      sipTransports: ['udp', 'tcp'],
      callbackAllowCidrs: [],
      logLevel: 'info',
    });
    expect(config.mediaWorkers).toBeGreaterThanOrEqual(1);
  });

  it('parses values into their types', () => {
    const key = Buffer.alloc(32, 7);
    const config = load({
      PORT: '0',
      TANDEM_SECRET_KEY: key.toString('base64'),
      TANDEM_PUBLIC_URL: 'https://voice.example/',
      TANDEM_OWNER_EMAIL: 'Owner@Example.com',
      SIP_TRANSPORTS: 'tcp, udp',
      SIP_TRACE: '10%',
      HEP_COLLECTOR: '[2001:db8::1]:9060',
      RTP_PORT_MIN: '30000',
      RTP_PORT_MAX: '30003',
      CALLBACK_ALLOW_CIDRS: '10.0.0.0/8, fd00::/8',
      LOG_LEVEL: 'debug',
    });
    expect(config).toMatchObject({
      port: 0,
      publicUrl: 'https://voice.example',
      ownerEmail: 'owner@example.com',
      sipTransports: ['tcp', 'udp'],
      sipTrace: 10,
      hepCollector: { host: '2001:db8::1', port: 9060 },
      rtpPortMin: 30_000,
      rtpPortMax: 30_003,
      callbackAllowCidrs: ['10.0.0.0/8', 'fd00::/8'],
      logLevel: 'debug',
    });
    expect(config.secretKey?.equals(key)).toBe(true);
  });

  it('parses previous keys, origins and limits of the enterprise plan', () => {
    const keys = [Buffer.alloc(32, 7), Buffer.alloc(32, 8)];
    const config = load({
      TANDEM_SECRET_KEY_PREVIOUS: keys.map((key) => key.toString('base64')).join(', '),
      CORS_ORIGINS: 'https://console.example,http://localhost:5173',
      LIMITS_ENTERPRISE_PER_MINUTE: '7',
    });
    expect(config.previousSecretKeys).toEqual(keys);
    expect(config.corsOrigins).toEqual(['https://console.example', 'http://localhost:5173']);
    expect(config).toMatchObject({ enterprisePerMinute: 7, enterprisePerDay: 1_000_000 });
    expect(load({ CORS_ORIGINS: '*' }).corsOrigins).toEqual(['*']);
    expect(load({}).trustedProxies).toEqual(['loopback']);
    expect(load({ TRUSTED_PROXIES: '10.0.0.7, fd00::/8' }).trustedProxies).toEqual(['10.0.0.7', 'fd00::/8']);
  });

  it('parses call limits', () => {
    const none = { dailySpendCapNano: null, blockedPrefixes: [], destinationLimits: [] };
    expect(load({})).toMatchObject(none);
    const env = { DAILY_SPEND_CAP_USD: '12.5', BLOCKED_PREFIXES: '+882, +979', DESTINATION_LIMITS: '+91:60,+44:5' };
    expect(load(env)).toMatchObject({
      dailySpendCapNano: 12_500_000_000n,
      blockedPrefixes: ['+882', '+979'],
      destinationLimits: [
        { prefix: '+91', callsPerMinute: 60 },
        { prefix: '+44', callsPerMinute: 5 },
      ],
    });
  });

  it('parses call placements per minute, for all plans or by plan', () => {
    expect(load({}).placementsPerMinute).toEqual({ free: 20, starter: 20, pro: 20, enterprise: 20 });
    const every = { free: 60, starter: 60, pro: 60, enterprise: 60 };
    expect(load({ PLACEMENTS_PER_MINUTE: '60' }).placementsPerMinute).toEqual(every);
    const some = load({ PLACEMENTS_PER_MINUTE: 'free:5, enterprise:6000' }).placementsPerMinute;
    expect(some).toEqual({ free: 5, starter: 20, pro: 20, enterprise: 6_000 });
  });

  it('parses access to metrics and the trace destination', () => {
    const defaults = { metricsToken: null, metricsAllowCidrs: ['127.0.0.0/8', '::1/128'], otlpEndpoint: null };
    expect(load({})).toMatchObject({ ...defaults, otlpHeaders: [] });
    const env = {
      METRICS_TOKEN: 'a-token-of-16-characters',
      METRICS_ALLOW_CIDRS: '10.0.0.0/8',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.example/otlp/',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20secret, x-tenant=a=b',
    };
    expect(load(env)).toMatchObject({
      metricsToken: 'a-token-of-16-characters',
      metricsAllowCidrs: ['10.0.0.0/8'],
      otlpEndpoint: 'https://collector.example/otlp',
      otlpHeaders: [
        ['authorization', 'Bearer secret'],
        ['x-tenant', 'a=b'],
      ],
    });
    for (const headers of ['authorization', '=value', 'name=', 'a b=c', 'name=%', 'name=%0d%0a']) {
      expect(refusal({ OTEL_EXPORTER_OTLP_HEADERS: headers })).toMatch(/^OTEL_EXPORTER_OTLP_HEADERS must be/);
    }
  });

  it('parses allowed countries', () => {
    expect(load({}).numberPlan).toEqual(['IN']);
    expect(load({ NUMBER_PLAN: 'in, US,GB' }).numberPlan).toEqual(['IN', 'US', 'GB']);
    expect(load({ NUMBER_PLAN: 'any' }).numberPlan).toBe('any');
  });

  it('parses aliases and concurrency of language models', () => {
    const config = load({ LLM_ALIASES: 'fast=qwen3:4b, __proto__ = org/model=q4, same=same', LLM_CONCURRENCY: '2' });
    expect([...config.llmAliases]).toEqual([
      ['fast', 'qwen3:4b'],
      ['__proto__', 'org/model=q4'],
      ['same', 'same'],
    ]);
    expect(config.llmConcurrency).toBe(2);
    expect([...load({}).llmAliases]).toEqual([]);
    expect(load({}).llmConcurrency).toBe(4);
  });

  it('treats an empty value as unset', () => {
    expect(load({ PORT: '', TANDEM_API_KEY: '' })).toMatchObject({ port: 8080, apiKey: null });
  });

  it.each([
    ['PORT', 'abc'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80.5'],
    ['PORT', '0x50'],
    ['HOST', 'two words'],
    ['TANDEM_PUBLIC_URL', 'voice.example'],
    ['TANDEM_PUBLIC_URL', 'ftp://voice.example'],
    ['TANDEM_PUBLIC_URL', 'https://voice.example/?tenant=1'],
    ['TANDEM_PUBLIC_URL', 'https://voice.example/#top'],
    ['TANDEM_PUBLIC_URL', 'https://user:secret@voice.example'],
    ['TANDEM_OWNER_EMAIL', 'nobody'],
    ['TANDEM_OWNER_PASSWORD', 'short'],
    ['TANDEM_API_KEY', 'pk_0123456789abcdef'],
    ['TANDEM_SECRET_KEY', 'c2hvcnQ='],
    ['TANDEM_SECRET_KEY', `${'A'.repeat(42)}!=`],
    ['DATABASE_URL', 'mysql://db'],
    ['REDIS_URL', 'http://redis'],
    ['SIP_TRANSPORTS', 'udp,tls'],
    ['SIP_TRACE', '100'],
    ['SIP_TRACE', '0%'],
    ['SIP_TRACE_DAYS', '0'],
    ['HEP_COLLECTOR', 'homer'],
    ['HEP_COLLECTOR', 'homer:0'],
    ['HEP_COLLECTOR', '2001:db8::1:9060'],
    ['RTP_HOST', 'media.example'],
    ['RTP_PORT_MIN', '20001'],
    ['RTP_PORT_MIN', '80'],
    ['MEDIA_WORKERS', '0'],
    ['STT_ENGINE', 'ears'],
    ['CALLBACK_ALLOW_CIDRS', '10.0.0.0'],
    ['CALLBACK_ALLOW_CIDRS', '10.0.0.0/33'],
    ['TANDEM_SECRET_KEY_PREVIOUS', `${Buffer.alloc(32).toString('base64')},c2hvcnQ=`],
    ['CORS_ORIGINS', 'console.example'],
    ['CORS_ORIGINS', 'https://console.example/'],
    ['CORS_ORIGINS', 'https://console.example,null'],
    ['TRUSTED_PROXIES', 'loopback,everybody'],
    ['TRUSTED_PROXIES', '10.0.0.0/33'],
    ['LIMITS_ENTERPRISE_PER_MINUTE', '0'],
    ['LIMITS_ENTERPRISE_PER_DAY', 'many'],
    ['LLM_ALIASES', 'fast'],
    ['LLM_ALIASES', 'fast=a,fast=b'],
    ['LLM_ALIASES', '=a'],
    ['LLM_ALIASES', 'fast=a,'],
    ['LLM_ALIASES', 'fast=quick,quick=a'],
    ['LLM_ALIASES', 'a=b,b=a'],
    ['LLM_ALIASES', 'fast=svc-tiny'],
    ['LLM_ALIASES', 'svc-tiny=jev-latest'],
    ['LLM_CONCURRENCY', '0'],
    ['MEMORY_INDEX', 'hnsw'],
    ['NUMBER_PLAN', 'UK'],
    ['NUMBER_PLAN', 'IN,any'],
    ['NUMBER_PLAN', '__proto__'],
    ['DAILY_SPEND_CAP_USD', '-1'],
    ['DAILY_SPEND_CAP_USD', '1e3'],
    ['BLOCKED_PREFIXES', '882'],
    ['PLACEMENTS_PER_MINUTE', '0'],
    ['PLACEMENTS_PER_MINUTE', 'gold:5'],
    ['PLACEMENTS_PER_MINUTE', 'pro:60,enterprise'],
    ['DESTINATION_LIMITS', '+91'],
    ['DESTINATION_LIMITS', '+91:0'],
    ['TRUNK_ALLOW_CIDRS', '10.0.0.0'],
    ['REGISTRATION', 'maybe'],
    ['LOG_LEVEL', 'loud'],
  ])('rejects %s=%s in one line that names it', (name, value) => {
    const message = refusal({ [name]: value });
    expect(message).toContain(name);
    expect(message).not.toContain('\n');
  });

  it.each([
    'TANDEM_OWNER_PASSWORD',
    'METRICS_TOKEN',
    'OTEL_EXPORTER_OTLP_HEADERS',
    'EMBEDDINGS_API_KEY',
    'TANDEM_API_KEY',
    'TANDEM_SECRET_KEY',
    'DATABASE_URL',
    'DRACHTIO_SECRET',
  ])('never repeats a malformed %s', (name) => {
    expect(refusal({ [name]: 'hun ter' })).not.toContain('hun');
  });

  it('rejects an RTP range without room for one call', () => {
    expect(refusal({ RTP_PORT_MIN: '20000', RTP_PORT_MAX: '20002' })).toMatch(/^RTP_PORT_MAX .*20003/);
    expect(refusal({ RTP_PORT_MIN: '40000', RTP_PORT_MAX: '30000' })).toMatch(/^RTP_PORT_MAX/);
  });

  it('requires the secret of a drachtio server', () => {
    expect(refusal({ DRACHTIO_HOST: 'sip.internal' })).toMatch(/^DRACHTIO_SECRET/);
  });

  it('rejects values that a drachtio server cannot use: a secret with its separator, and a name as its address', () => {
    const drachtio = { DRACHTIO_HOST: 'sip.internal', DRACHTIO_SECRET: 'secret' };
    expect(refusal({ ...drachtio, DRACHTIO_SECRET: 'a|b' })).toMatch(/^DRACHTIO_SECRET must be/);
    expect(refusal({ ...drachtio, SIP_HOST: 'sip.example.com' })).toMatch(/^SIP_HOST must be an IPv4 address/);
    expect(load({ ...drachtio, SIP_HOST: '192.0.2.1' }).sipHost).toBe('192.0.2.1');
    expect(load({ SIP_HOST: 'sip.example.com' }).sipHost).toBe('sip.example.com');
  });

  it('rejects S3 settings without a bucket, or with half of the credentials', () => {
    expect(refusal({ S3_ENDPOINT: 'https://s3.example.com' })).toMatch(/^S3_BUCKET must be set/);
    expect(refusal({ S3_ACCESS_KEY_ID: 'id', S3_SECRET_ACCESS_KEY: 'secret' })).toMatch(/^S3_BUCKET must be set/);
    expect(refusal({ S3_BUCKET: 'audio', S3_ACCESS_KEY_ID: 'id' })).toMatch(/^S3_ACCESS_KEY_ID and .* together/);
    expect(refusal({ S3_BUCKET: 'audio', S3_PREFIX: 'no-slash' })).toMatch(/^S3_PREFIX must be .*"no-slash"/);
    expect(refusal({ S3_BUCKET: 'audio', S3_PREFIX: '../' })).toMatch(/^S3_PREFIX/);
  });

  it('rejects an unknown setting and suggests a known one', () => {
    expect(refusal({ TANDEM_PUBLICURL: 'https://a.example' })).toMatch(/^TANDEM_PUBLICURL .*TANDEM_PUBLIC_URL\.$/);
    expect(refusal({ TANDEM_NONSENSE: '1' })).toContain('TANDEM_DATA_DIR');
  });

  it('ignores variables of other programs', () => {
    expect(load({ PATH: '/bin', NODE_ENV: 'test', SIP_SOMETHING: 'else' }).port).toBe(8080);
  });

  it('accepts no arguments except --help', () => {
    expect(refusal({}, ['--port=1'])).toContain('--port=1');
    expect(wantsHelp(['--help'])).toBe(true);
    expect(wantsHelp([])).toBe(false);
  });
});

describe('mapPaths', () => {
  it('maps every path, and no other setting', () => {
    const mapped = mapPaths(load({ LLM_MODEL_PATH: 'model.gguf', TTS_MODEL: 'tts-1' }), (path) => `/srv/${path}`);
    expect(mapped).toEqual({
      ...load({ TTS_MODEL: 'tts-1' }),
      ...{ dataDir: '/srv/./.data', modelsDir: '/srv/./.data/models', llmModelPath: '/srv/model.gguf' },
    });
    const variables: Variable<unknown>[] = Object.values(VARIABLES);
    for (const { name, about, isPath } of variables) {
      expect(isPath ?? false, name).toBe(/^(Path|Folder) of /.test(about));
    }
  });
});

describe('.env file', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tandem-config-'));
    path = join(folder, '.env');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('supplies settings below the environment', () => {
    writeFileSync(path, '# mine\nPORT=9000\nHOST="0.0.0.0"\n');
    expect(loadConfig({ PORT: '9001' }, [], path)).toMatchObject({ port: 9001, host: '0.0.0.0' });
  });

  it('may begin with a byte order mark', () => {
    writeFileSync(path, '\uFEFFPORT=9000\r\nHOST=0.0.0.0\r\n');
    expect(loadConfig({}, [], path)).toMatchObject({ port: 9000, host: '0.0.0.0' });
  });

  it.each([
    ['\uFEFFPORT=9000\r\n', 'utf16le'],
    ['PORT=9000\r\n', 'utf16le'],
    ['S3_PREFIX=gespräche\n', 'latin1'],
  ] as const)('must be UTF-8, unlike %j as %s', (text, encoding) => {
    writeFileSync(path, text, encoding);
    expect(() => loadConfig({}, [], path)).toThrow(/\.env cannot be read: save it as UTF-8/);
  });

  it('may have comments that are not UTF-8', () => {
    writeFileSync(path, '# Für Gespräche\nPORT=9000 # geprüft\n', 'latin1');
    expect(loadConfig({}, [], path)).toMatchObject({ port: 9000 });
  });

  it('must not contain a misspelt setting', () => {
    writeFileSync(path, 'RTP_PORT_MINIMUM=20000\n');
    expect(() => loadConfig({}, [], path)).toThrow(/^RTP_PORT_MINIMUM is not a setting.*RTP_PORT_MIN/);
    writeFileSync(path, 'PLACEMENTS_PER_MIN=60\n');
    expect(() => loadConfig({}, [], path)).toThrow(/^PLACEMENTS_PER_MIN is not a setting.*PLACEMENTS_PER_MINUTE/);
    writeFileSync(path, 'WEBRTC_PORTS=30000\n');
    expect(() => loadConfig({}, [], path)).toThrow(/^WEBRTC_PORTS is not a setting.*WEBRTC_PORT/);
    writeFileSync(path, 'HEP_HOST=10.0.0.9\n');
    expect(() => loadConfig({}, [], path)).toThrow(/^HEP_HOST is not a setting.*HEP_COLLECTOR/);
  });

  it.each([
    ['port', 'PORT'],
    ['Redis_Url', 'REDIS_URL'],
    ['recording_key', 'RECORDING_KEY'],
    ['stripe_secret', 'STRIPE_WEBHOOK_SECRET'],
  ])('rejects %s, which would be ignored, and names %s', (name, meant) => {
    writeFileSync(path, `${name}=1\n`);
    expect(() => loadConfig({}, [], path)).toThrow(`${name} is not a setting; those that exist are ${meant}.`);
  });

  it.each([
    ['PORT: 9001\n', 1, 'PORT'],
    ['port: 9001\n', 1, 'PORT'],
    ['# mine\r\n\r\nexport HOST 0.0.0.0\r\n', 3, 'HOST'],
    ['DATABASE_URL: postgres://me:geheim@127.0.0.1/x?sslmode=require\n', 1, 'DATABASE_URL'],
  ])('must not contain a setting without an equals sign, as in %j', (text, line, name) => {
    writeFileSync(path, text);
    expect(() => loadConfig({}, [], path)).toThrow(
      new ConfigError(`${path} cannot be read: line ${line} must be ${name}=VALUE`),
    );
  });

  it('may name settings in comments and values, and have spaces around the equals sign', () => {
    writeFileSync(path, '#PORT: 9001\n # HOST 0.0.0.0\nTITLE="PORT: 9001"\nexport PORT = 9000\nPORTS 1\nREDIS_URL\n');
    expect(loadConfig({}, [], path)).toMatchObject({ port: 9000, redisUrl: null });
  });

  it.each(['"', "'", '`'])('may name settings in the lines of a value in %s', (quote) => {
    const text = `NOTE=${quote}-----BEGIN\nPORT: 9001\n  HOST 0.0.0.0\nSIP_PORT: 5060${quote} # mine\nPORT=9000\n`;
    for (const written of [text, text.replaceAll('\n', '\r\n')]) {
      writeFileSync(path, written);
      expect(loadConfig({}, [], path)).toMatchObject({ port: 9000 });
    }
    writeFileSync(path, `${text}PORT: 9001\n`);
    expect(() => loadConfig({}, [], path)).toThrow(/line 6 must be PORT=VALUE$/);
  });

  it('stops the start if it is unreadable', () => {
    expect(() => loadConfig({}, [], folder)).toThrow(ConfigError);
  });
});

describe('describeConfig', () => {
  it('lists every variable with its default', () => {
    const text = describeConfig();
    for (const name of [
      'HOST',
      'PORT',
      'TANDEM_DATA_DIR',
      'TANDEM_PUBLIC_URL',
      'TANDEM_OWNER_EMAIL',
      'TANDEM_OWNER_PASSWORD',
      'TANDEM_API_KEY',
      'TANDEM_SECRET_KEY',
      'DATABASE_URL',
      'REDIS_URL',
      'DRACHTIO_HOST',
      'DRACHTIO_PORT',
      'DRACHTIO_SECRET',
      'SIP_HOST',
      'SIP_PORT',
      'SIP_TRANSPORTS',
      'SIP_MESSAGES_PER_SECOND',
      'SIP_TRACE',
      'SIP_TRACE_DAYS',
      'HEP_COLLECTOR',
      'HEP_CAPTURE_ID',
      'RTP_HOST',
      'RTP_PORT_MIN',
      'RTP_PORT_MAX',
      'MEDIA_WORKERS',
      'STT_ENGINE',
      'STT_PROCESSES',
      'STT_BASE_URL',
      'STT_API_KEY',
      'STT_MODEL',
      'TTS_PROCESSES',
      'TTS_ENGINE',
      'TTS_BASE_URL',
      'TTS_API_KEY',
      'TTS_MODEL',
      'TTS_CACHE_MB',
      'MODELS_DIR',
      'LLM_BASE_URL',
      'LLM_API_KEY',
      'LLM_MODEL',
      'LLM_ALIASES',
      'LLM_CONCURRENCY',
      'LLM_MODEL_PATH',
      'EMBEDDINGS_BASE_URL',
      'EMBEDDINGS_API_KEY',
      'EMBEDDINGS_MODEL',
      'MEMORY_INDEX',
      'S3_BUCKET',
      'CALLBACK_ALLOW_CIDRS',
      'LOG_LEVEL',
    ]) {
      expect(text).toMatch(new RegExp(`^ {2}${name} `, 'm'));
    }
    expect(text).toContain('default: 8080');
  });
});
