import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../config.ts';
import { checkSipTls } from '../../diagnosis/sip-tls.ts';
import { readTlsFiles, type SipTlsSettings } from '../../sip/tls-files.ts';
import { selfSignedCertificate } from '../callbacks/certificate.ts';

const ours = selfSignedCertificate({ dns: ['tandem.example'] });
const other = selfSignedCertificate({ dns: ['tandem.example'] });
const DAY_MS = 86_400_000;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-tls-'));
  await writeFile(join(folder, 'cert.pem'), ours.cert);
  await writeFile(join(folder, 'key.pem'), ours.key);
  await writeFile(join(folder, 'other-key.pem'), other.key);
  await writeFile(join(folder, 'empty.pem'), '');
});
afterAll(() => rm(folder, { recursive: true }));

const NONE: SipTlsSettings = {
  sipTlsPort: 5061,
  sipTlsCert: null,
  sipTlsKey: null,
  sipTlsCa: null,
  sipTlsClients: 'any',
};
const at = (name: string) => join(folder, name);

describe('readTlsFiles', () => {
  it('requires no files for client connections', async () => {
    expect(await readTlsFiles(NONE)).toEqual({
      port: 5061,
      certificate: null,
      ca: null,
      demandsClientCertificate: false,
    });
  });

  it('reads certificate, key and authorities', async () => {
    const files = { sipTlsCert: at('cert.pem'), sipTlsKey: at('key.pem'), sipTlsCa: at('cert.pem') };
    expect(await readTlsFiles({ ...NONE, ...files, sipTlsClients: 'certified' })).toEqual({
      port: 5061,
      certificate: ours,
      ca: ours.cert,
      demandsClientCertificate: true,
    });
  });

  it.each<[string, () => Partial<SipTlsSettings>, RegExp]>([
    ['a certificate without a key', () => ({ sipTlsCert: at('cert.pem') }), /SIP_TLS_CERT and SIP_TLS_KEY/],
    ['a missing file', () => ({ sipTlsCa: at('none.pem') }), /SIP_TLS_CA cannot be read: ENOENT/],
    ['a file without PEM', () => ({ sipTlsCa: at('empty.pem') }), /SIP_TLS_CA has no PEM block/],
    [
      'a key of another certificate',
      () => ({ sipTlsCert: at('cert.pem'), sipTlsKey: at('other-key.pem') }),
      /SIP_TLS_CERT, SIP_TLS_KEY cannot be used/,
    ],
    ['required client certificates without authorities', () => ({ sipTlsClients: 'certified' as const }), /SIP_TLS_CA/],
  ])('names the setting of %s', async (_what, changes, message) => {
    await expect(readTlsFiles({ ...NONE, ...changes() })).rejects.toThrow(message);
  });
});

describe('tandem doctor', () => {
  const config = (env: Record<string, string>) => loadConfig(env, [], '/nonexistent/.env');
  const withCertificate = () => config({ SIP_TLS_CERT: at('cert.pem'), SIP_TLS_KEY: at('key.pem') });

  it('reports the TLS capabilities', async () => {
    expect(await checkSipTls(config({}))).toMatchObject({ status: 'ok', message: expect.stringContaining('carriers') });
    expect(await checkSipTls(withCertificate(), Date.now() - 30 * DAY_MS)).toMatchObject({
      status: 'ok',
      message: expect.stringMatching(/^certificate until \d{4}-\d\d-\d\d; any peer may connect to port 5061$/),
    });
  });

  it('warns before the certificate expires, and fails afterwards', async () => {
    expect(await checkSipTls(withCertificate())).toMatchObject({ status: 'warn' });
    expect(await checkSipTls(withCertificate(), Date.now() + 2 * DAY_MS)).toMatchObject({ status: 'fail' });
  });

  it('names a missing file', async () => {
    expect(await checkSipTls(config({ SIP_TLS_CA: '/nonexistent/ca.pem' }))).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('SIP_TLS_CA'),
    });
  });
});
