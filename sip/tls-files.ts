import { readFile } from 'node:fs/promises';
import { createTlsSecurity, type TlsSettings } from './embedded/transport/tls-security.ts';
import { SipError } from './sip-error.ts';

/** Subset of the settings in `settings.ts`: paths of PEM files. */
export interface SipTlsSettings {
  readonly sipTlsPort: number;
  readonly sipTlsCert: string | null;
  readonly sipTlsKey: string | null;
  readonly sipTlsCa: string | null;
  readonly sipTlsClients: 'any' | 'certified';
}

/** @throws SipError `server.unusable_files` naming the setting whose file is missing or unusable, before anything is opened. */
export async function readTlsFiles(settings: SipTlsSettings): Promise<TlsSettings> {
  const { sipTlsCert, sipTlsKey, sipTlsCa, sipTlsClients } = settings;
  if ((sipTlsCert === null) !== (sipTlsKey === null)) {
    throw new SipError('server.unusable_files', 'SIP_TLS_CERT and SIP_TLS_KEY must be set together.');
  }
  if (sipTlsClients === 'certified' && (sipTlsCert === null || sipTlsCa === null)) {
    throw new SipError(
      'server.unusable_files',
      'SIP_TLS_CLIENTS=certified needs SIP_TLS_CERT, SIP_TLS_KEY and SIP_TLS_CA.',
    );
  }
  const [cert, key, ca] = await Promise.all([
    readPem('SIP_TLS_CERT', sipTlsCert),
    readPem('SIP_TLS_KEY', sipTlsKey),
    readPem('SIP_TLS_CA', sipTlsCa),
  ]);
  const tls: TlsSettings = {
    port: settings.sipTlsPort,
    certificate: cert !== null && key !== null ? { cert, key } : null,
    ca,
    demandsClientCertificate: sipTlsClients === 'certified',
  };
  try {
    createTlsSecurity(tls);
  } catch (cause) {
    const names = [sipTlsCert && 'SIP_TLS_CERT', sipTlsKey && 'SIP_TLS_KEY', sipTlsCa && 'SIP_TLS_CA'];
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SipError(
      'server.unusable_files',
      `The files of ${names.filter(Boolean).join(', ')} cannot be used: ${reason}`,
      { cause },
    );
  }
  return tls;
}

async function readPem(setting: string, path: string | null): Promise<string | null> {
  if (path === null) return null;
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SipError('server.unusable_files', `The file of ${setting} cannot be read: ${reason}`, { cause });
  });
  if (!text.includes('-----BEGIN '))
    throw new SipError('server.unusable_files', `The file of ${setting} has no PEM block.`);
  return text;
}
