import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../config.ts';
import { settingNames, textOf } from './repository.ts';

interface Service {
  image: string;
  command?: string[];
  environment?: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test: string[] };
  ports?: string[];
  networks?: string[];
  restart?: string;
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  stop_grace_period?: string;
  volumes?: string[];
}

interface Composition {
  services: Record<string, Service>;
  networks: Record<string, { internal?: boolean } | null>;
  volumes: Record<string, unknown>;
}

/** Variables of the composition that are no settings of Tandem. */
const COMPOSE_ONLY = ['POSTGRES_PASSWORD'];
const SECRETS = ['POSTGRES_PASSWORD', 'DRACHTIO_SECRET', 'TANDEM_SECRET_KEY'];
const FILLED_IN = {
  POSTGRES_PASSWORD: 'p4ssw0rd',
  DRACHTIO_SECRET: 's3cret',
  TANDEM_SECRET_KEY: Buffer.alloc(32, 1).toString('base64'),
  SIP_HOST: '203.0.113.7',
  RTP_HOST: '203.0.113.7',
};

/** `${NAME}`, `${NAME:-default}` and `${NAME:?what is asked for}`. */
const INTERPOLATION = /\$\{(\w+)(?::([?-])([^}]*))?\}/g;

const source = textOf('docker-compose.yml');
const { tandem, postgres, redis, drachtio } = composition({}).services as Record<string, Service>;
const interpolations = [...source.matchAll(INTERPOLATION)].map(([, name = '', operator = '', operand = '']) => ({
  name,
  operator,
  operand,
}));

describe('the composition', () => {
  it('has Tandem, a database, Redis and a SIP server', () => {
    expect(Object.keys(composition({}).services).sort()).toEqual(['drachtio', 'postgres', 'redis', 'tandem']);
  });

  it('pins every image to one release', () => {
    for (const { image } of Object.values(composition({}).services)) {
      expect(image).toMatch(/^[\w./-]+:\d+\.\d+(\.\d+)?(-bookworm)?(@sha256:[0-9a-f]{64})?$/);
    }
  });

  it('runs a PostgreSQL that is new enough', () => {
    expect(Number(/^postgres:(\d+)\./.exec(postgres?.image ?? '')?.[1])).toBeGreaterThanOrEqual(15);
  });

  it('starts Tandem when all it needs is healthy', () => {
    expect(tandem?.depends_on).toEqual({
      postgres: { condition: 'service_healthy' },
      redis: { condition: 'service_healthy' },
      drachtio: { condition: 'service_healthy' },
    });
    for (const service of [postgres, redis, drachtio]) expect(service?.healthcheck?.test.length).toBeGreaterThan(1);
    // That of Tandem is in its image.
    expect(textOf('Dockerfile')).toMatch(/^HEALTHCHECK /m);
  });

  it('refuses to start without secrets, and has a default for none', () => {
    for (const secret of SECRETS) {
      const uses = interpolations.filter(({ name }) => name === secret);
      expect(uses.length, secret).toBeGreaterThanOrEqual(1);
      for (const { operator, operand } of uses) {
        expect(operator, secret).toBe('?');
        expect(operand, secret).toContain(secret);
      }
    }
    const defaulted = interpolations.filter(({ name }) => /SECRET|PASSWORD|KEY/.test(name) && !SECRETS.includes(name));
    expect(defaulted.filter(({ operand }) => operand !== '')).toEqual([]);
  });

  it('names only settings that exist, and passes on or decides every one that matters in it', () => {
    const known = [...settingNames(), ...COMPOSE_ONLY];
    expect(known.length).toBeGreaterThan(30);
    const given = Object.keys(tandem?.environment ?? {});
    expect([...given, ...interpolations.map(({ name }) => name)].filter((name) => !known.includes(name))).toEqual([]);
    // Those of the embedded SIP server, which drachtio replaces, and of the command line, which the image does not have.
    const embeddedTls = ['PORT', 'CERT', 'KEY', 'CA', 'CLIENTS'].map((name) => `SIP_TLS_${name}`);
    const irrelevant = [
      'SIP_HOST',
      'SIP_PORT',
      'SIP_TRANSPORTS',
      'SIP_MESSAGES_PER_SECOND',
      ...embeddedTls,
      'TANDEM_URL',
    ];
    expect(settingNames().filter((name) => !given.includes(name) && !irrelevant.includes(name))).toEqual([]);
  });

  it('gives Tandem settings that it accepts', () => {
    const config = loadConfig(composition({}).services.tandem?.environment ?? {}, [], '/nonexistent/.env');
    expect(config).toMatchObject({ host: '0.0.0.0', drachtioHost: 'drachtio', redisUrl: 'redis://redis:6379' });
    expect(new URL(config.databaseUrl ?? '')).toMatchObject({ hostname: 'postgres', password: 'p4ssw0rd' });
  });

  it('gives both ends of a connection the same secret and port', () => {
    expect(drachtio?.environment?.DRACHTIO_SECRET).toBe(tandem?.environment?.DRACHTIO_SECRET);
    expect(drachtio?.environment?.DRACHTIO_ADMIN_TCP_PORT).toBe(tandem?.environment?.DRACHTIO_PORT);
    const { POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB } = postgres?.environment ?? {};
    expect(tandem?.environment?.DATABASE_URL).toBe(
      `postgres://${POSTGRES_USER}:${POSTGRES_PASSWORD}@postgres:5432/${POSTGRES_DB}`,
    );
  });

  it.each([
    { range: 'the default RTP range', settings: {} as Record<string, string> },
    { range: 'another RTP range', settings: { RTP_PORT_MIN: '30000', RTP_PORT_MAX: '30099' } },
  ])('publishes exactly the ports of $range', ({ settings }) => {
    const service = composition(settings).services.tandem;
    const { RTP_PORT_MIN, RTP_PORT_MAX, WEBRTC_PORT } = service?.environment ?? {};
    const range = `${RTP_PORT_MIN}-${RTP_PORT_MAX}`;
    expect(service?.ports?.filter((port) => port.endsWith('/udp'))).toEqual([
      `${range}:${range}/udp`,
      `${WEBRTC_PORT}:${WEBRTC_PORT}/udp`,
    ]);
    expect(service?.environment).toMatchObject(settings);
  });

  it('has the same default RTP range as the image', () => {
    const image = textOf('Dockerfile');
    expect(image).toContain(`RTP_PORT_MIN=${tandem?.environment?.RTP_PORT_MIN} `);
    expect(image).toContain(`RTP_PORT_MAX=${tandem?.environment?.RTP_PORT_MAX}\n`);
  });

  it('publishes SIP, HTTP on loopback, and no door to the inside', () => {
    expect(drachtio?.ports).toEqual(['5060:5060/udp', '5060:5060/tcp']);
    expect(drachtio?.command?.join(' ')).toContain('--contact sip:*:5060;transport=udp,tcp --external-ip 203.0.113.7');
    expect(tandem?.ports?.filter((port) => port.endsWith('/tcp'))).toEqual(['127.0.0.1:8080:8080/tcp']);
    for (const service of [postgres, redis]) {
      expect(service?.ports).toBeUndefined();
      expect(service?.networks).toEqual(['backend']);
    }
    expect(composition({}).networks.backend).toEqual({ internal: true });
  });

  it('gives no service more rights than it needs, and starts it again when it dies', () => {
    for (const service of Object.values(composition({}).services)) {
      expect(service).toMatchObject({
        restart: 'unless-stopped',
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      });
    }
  });

  it('lets live calls finish when it is stopped', () => {
    const drainMs = Number(/DRAIN_MS = ([\d_]+)/.exec(textOf('main.ts'))?.[1]?.replaceAll('_', ''));
    const graceMs = Number.parseInt(tandem?.stop_grace_period ?? '', 10) * 1000;
    expect(drainMs).toBeGreaterThan(0);
    expect(graceMs).toBeGreaterThan(drainMs + 10_000);
  });

  it('keeps everything that must outlive a container in volumes', () => {
    const mounted = Object.values(composition({}).services).flatMap(({ volumes = [] }) => volumes);
    expect(mounted.map((volume) => volume.split(':')[0]).sort()).toEqual(Object.keys(composition({}).volumes).sort());
    expect(tandem?.volumes).toContain(`tandem-data:${tandem?.environment?.TANDEM_DATA_DIR}`);
    expect(redis?.command?.join(' ')).toContain('--appendonly yes');
  });
});

describe('.env.example', () => {
  const assignments = [...textOf('.env.example').matchAll(/^#?([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(
    ([, name = '', value = '']) => ({ name, value }),
  );

  it('has every setting once, and no other', () => {
    const names = assignments.map(({ name }) => name).filter((name) => !COMPOSE_ONLY.includes(name));
    expect(names.sort()).toEqual(settingNames().sort());
  });

  it('has a place for everything that the composition asks for', () => {
    const required = interpolations.filter(({ operator }) => operator === '?').map(({ name }) => name);
    const active = [...textOf('.env.example').matchAll(/^([A-Z0-9_]+)=$/gm)].map((match) => match[1]);
    expect(new Set(required)).toEqual(new Set(Object.keys(FILLED_IN)));
    expect(active.sort()).toEqual(Object.keys(FILLED_IN).sort());
  });

  it('has no secret filled in', () => {
    const filled = assignments.filter(({ name, value }) => /SECRET|PASSWORD|KEY/.test(name) && value !== '');
    expect(filled).toEqual([]);
  });

  it('is accepted as it is, and with every line in force', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tandem-env-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, '.env');
    writeFileSync(path, textOf('.env.example'));
    expect(loadConfig({}, [], path).port).toBe(8080);
    writeFileSync(path, textOf('.env.example').replace(/^#(?=[A-Z0-9_]+=)/gm, ''));
    expect(loadConfig({ DRACHTIO_SECRET: 's3cret' }, [], path).logLevel).toBe('info');
  });
});

/** The composition as compose sees it: parsed, then filled in with the required values and the settings given. */
function composition(settings: Record<string, string>): Composition {
  const values: Record<string, string> = { ...FILLED_IN, ...settings };
  const fillIn = (text: string) =>
    text.replace(INTERPOLATION, (_, name: string, operator: string, operand: string) => {
      const value = values[name] || (operator === '-' ? operand : '');
      if (operator === '?' && value === '') throw new Error(operand);
      return value;
    });
  return parse(source, (_key, value: unknown) => (typeof value === 'string' ? fillIn(value) : value)) as Composition;
}
