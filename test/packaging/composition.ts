import { parse } from 'yaml';
import { textOf } from './repository.ts';

export interface Service {
  image: string;
  build?: string;
  profiles?: string[];
  command?: string[];
  environment?: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test: string[] };
  ports?: string[];
  networks?: string[] | Record<string, { ipv4_address: string }>;
  restart?: string;
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  stop_grace_period?: string;
  volumes?: string[];
}

interface Network {
  internal?: boolean;
  ipam?: { config: { subnet: string; gateway: string; ip_range: string }[] };
}

export interface Composition {
  services: Record<string, Service>;
  networks: Record<string, Network | null>;
  volumes: Record<string, unknown>;
}

/** Required values of `.env`. */
export const FILLED_IN = {
  POSTGRES_PASSWORD: 'p4ssw0rd',
  DRACHTIO_SECRET: 's3cret',
  TANDEM_SECRET_KEY: Buffer.alloc(32, 1).toString('base64'),
  SIP_HOST: '203.0.113.7',
  RTP_HOST: '203.0.113.7',
};

/** `${NAME}`, `${NAME:-default}` and `${NAME:?message}`, but not `$${`. */
const INTERPOLATION = /(?<!\$)\$\{(\w+)(?::([?-])([^}]*))?\}/g;

export function interpolations(): { name: string; operator: string; operand: string }[] {
  return [...textOf('docker-compose.yml').matchAll(INTERPOLATION)].map(
    ([, name = '', operator = '', operand = '']) => ({
      name,
      operator,
      operand,
    }),
  );
}

/** The parsed composition with required values and the given settings. */
export function composition(settings: Record<string, string> = {}): Composition {
  const values: Record<string, string> = { ...FILLED_IN, ...settings };
  const fillIn = (text: string): string =>
    text
      .replace(INTERPOLATION, (_, name: string, operator: string, operand: string) => {
        const value = values[name] || (operator === '-' ? operand : '');
        if (operator === '?' && value === '') throw new Error(operand);
        return value;
      })
      .replaceAll('$$', '$');
  const document: unknown = parse(textOf('docker-compose.yml'), { merge: true });
  return fillInAll(document, fillIn) as Composition;
}

function fillInAll(node: unknown, fillIn: (text: string) => string): unknown {
  if (typeof node === 'string') return fillIn(node);
  if (Array.isArray(node)) return node.map((each) => fillInAll(each, fillIn));
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, fillInAll(value, fillIn)]));
}
