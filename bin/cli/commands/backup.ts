import { stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { TANDEM_VERSION } from '../../../runtime/version.ts';
import { backUp } from '../../../storage/backup/back-up.ts';
import { BackupError } from '../../../storage/backup/backup-error.ts';
import type { BackupManifest } from '../../../storage/backup/manifest.ts';
import { restore } from '../../../storage/backup/restore.ts';
import { type Command, CommandError, defineAction } from '../command.ts';
import { formatUsd } from '../money.ts';
import { newNodeId, openPlatformStorage, openRestoreTarget } from '../platform-storage.ts';
import { readSettings } from '../settings.ts';
import { fields } from '../terminal.ts';

const backup = defineAction({
  summary: 'Back up the database and all objects to one file, whether the server runs or not.',
  parameters: [{ name: 'TARGET', about: 'a new file such as tandem.tar, or a folder in which one is created' }],
  options: { 'with-key': { about: 'put the master key, which decrypts stored secrets, into the backup' } },
  async run({ host, values, arguments: [target = ''], terminal }) {
    const now = new Date();
    const file = await fileOf(resolve(host.cwd(), target), now);
    await using storage = await openPlatformStorage(readSettings(host));
    const { sql, objects, node, masterKey } = storage;
    const withKey = values['with-key'] === true;
    const { sizeBytes, manifest } = await refusing(
      backUp({
        ...{ sql, objects, file, node, secretKey: masterKey, withKey, now },
        tandemVersion: TANDEM_VERSION,
        onProgress: (text) => terminal.progress(text),
      }),
    );
    const { missing } = manifest.objects;
    const text = [
      fields([['file', `${file} (${megabytes(sizeBytes)})`], ...contentsOf(manifest)]),
      ...(missing === 0
        ? []
        : [`${missing} objects are not in the backup: they were deleted, or are on another node.`]),
      keyNote(manifest),
    ].join('\n');
    return { data: { file, size_bytes: sizeBytes, ...reportOf(manifest) }, text };
  },
});

const restoreAction = defineAction({
  summary: 'Restore a backup into an empty database and data folder. The server must not run.',
  parameters: [{ name: 'FILE', about: 'a file that tandem backup wrote' }],
  options: {
    replace: { about: 'delete the data that the database and the data folder have' },
    'without-key': { about: 'restore although the master key is missing; stored secrets are lost' },
  },
  async run({ host, values, arguments: [given = ''], terminal }) {
    const file = resolve(host.cwd(), given);
    const settings = readSettings(host);
    const { manifest, key } = await refusing(
      restore({
        ...{ file, replace: values.replace === true, withoutKey: values['without-key'] === true },
        openTarget: () => openRestoreTarget(settings),
        newNode: newNodeId,
        onProgress: (text) => terminal.progress(text),
      }),
    );
    const text = [
      fields([['restored', `${basename(file)}, of ${manifest.created_at}`], ...contentsOf(manifest)]),
      'All rows were counted, and all balances match the ledger.',
      KEY_RESTORED[key],
    ].join('\n');
    return { data: { file, ...reportOf(manifest), secret_key: key }, text };
  },
});

export const backupCommand: Command = { action: backup };
export const restoreCommand: Command = { action: restoreAction };

const KEY_RESTORED = {
  restored: 'The master key of the backup is in the data folder.',
  present: 'The master key matches the backup.',
  missing: 'The master key is missing: set trunk passwords, callback and webhook secrets again.',
};

async function fileOf(target: string, now: Date): Promise<string> {
  const isFolder = (await stat(target).catch(() => null))?.isDirectory() ?? false;
  return isFolder ? join(target, `tandem-${now.toISOString().slice(0, 19).replaceAll(':', '-')}Z.tar`) : target;
}

/** Converts a BackupError to a one-line CommandError. */
async function refusing<T>(work: Promise<T>): Promise<T> {
  return await work.catch((cause: unknown) => {
    if (!(cause instanceof BackupError)) throw cause;
    throw new CommandError(cause.code, cause.message, { cause });
  });
}

type Contents = Omit<BackupManifest, 'checksums'>;

function contentsOf(manifest: Contents): [string, string][] {
  const rowsOf = (table: string) => manifest.tables.find(({ name }) => name === table)?.rows ?? 0;
  const { tables, objects, ledger } = manifest;
  const total = tables.reduce((sum, { rows }) => sum + rows, 0);
  return [
    ['rows', `${total} in ${tables.length} tables, schema ${manifest.migrations.at(-1)?.name}`],
    ['workspaces', String(rowsOf('workspaces'))],
    ['calls', String(rowsOf('calls'))],
    ['memories', String(rowsOf('memories'))],
    ['objects', `${objects.count} (${megabytes(objects.bytes)})`],
    ['ledger', `${ledger.entries} entries, ${formatUsd(BigInt(ledger.wallets_nano))} in wallets`],
  ];
}

function reportOf({ created_at, tandem_version, tables, objects, ledger, secret_key }: Contents) {
  const rows = Object.fromEntries(tables.map(({ name, rows: count }) => [name, count]));
  return { created_at, tandem_version, rows, objects, ledger, secret_key };
}

function keyNote({ secret_key: { included, id } }: Contents): string {
  if (included) return 'The backup contains the master key. Store it as safely as a password.';
  const where = id === null ? 'TANDEM_SECRET_KEY' : 'TANDEM_SECRET_KEY, or the file secret-key in the data folder';
  return `The backup does not contain the master key: keep a copy of ${where}.`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
