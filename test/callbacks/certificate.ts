import { createHash, generateKeyPairSync, sign } from 'node:crypto';

/** A self-signed TLS certificate, encoded as DER (RFC 5280) because node:crypto cannot create one. */
export function selfSignedCertificate(names: {
  dns?: string[];
  ipv4?: string[];
  uri?: string[];
  commonName?: string;
  /** Default: tomorrow. */
  expiresAtMs?: number;
}): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const algorithm = sequence(oid('2a8648ce3d040302')); // ecdsa-with-SHA256
  const name = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(names.commonName ?? 'tandem test')))));
  const dayMs = 86_400_000;
  const expiresAtMs = names.expiresAtMs ?? Date.now() + dayMs;
  const validity = sequence(utcTime(Math.min(Date.now(), expiresAtMs) - dayMs), utcTime(expiresAtMs));
  const altNames = sequence(
    ...(names.dns ?? []).map((it) => der(0x82, Buffer.from(it))),
    ...(names.uri ?? []).map((it) => der(0x86, Buffer.from(it))),
    ...(names.ipv4 ?? []).map((it) => der(0x87, Buffer.from(it.split('.').map(Number)))),
  );
  const extensions = sequence(
    sequence(oid('551d13'), der(0x01, Buffer.from([0xff])), der(0x04, sequence(der(0x01, Buffer.from([0xff]))))),
    ...(altNames.length > 2 ? [sequence(oid('551d11'), der(0x04, altNames))] : []),
  );
  const serial = createHash('sha256').update(spki).digest().subarray(0, 8);
  serial[0] = 0x01;
  const toBeSigned = sequence(
    der(0xa0, integer(2)),
    der(0x02, serial),
    algorithm,
    name,
    validity,
    name,
    spki,
    der(0xa3, extensions),
  );
  const signature = sign('sha256', toBeSigned, privateKey);
  const certificate = sequence(toBeSigned, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const base64 = certificate.toString('base64').replace(/.{1,64}/g, '$&\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64}-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}

function der(tag: number, content: Buffer): Buffer {
  const length = content.length;
  const header =
    length < 128 ? [tag, length] : length < 256 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from(header), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function integer(value: number): Buffer {
  return der(0x02, Buffer.from([value]));
}

function utcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}
