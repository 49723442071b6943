import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { loadConfig } from '../config.ts';
import { openDatabase } from '../storage/database.ts';
import { runningDatabaseUrl } from '../storage/embedded/running.ts';
import { topUp } from '../storage/ledger.ts';

const USAGE = `Usage: npm run top-up -- USD [--workspace ID] [--key OPERATION]

Puts money into a wallet while the server runs. USD is a decimal such as 10 or 2.50.

  --workspace ID    default: the first workspace
  --key OPERATION   the same key tops up once, however often it is run (default: a new one)
  --help            this text
`;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      workspace: { type: 'string' },
      key: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const amountNano = nanoOf(positionals[0]);
  if (values.help || amountNano === null) {
    process.stdout.write(USAGE);
    return values.help ? 0 : 2;
  }
  const config = loadConfig(process.env);
  const url = config.databaseUrl ?? (await runningDatabaseUrl(config.dataDir));
  if (url === null) {
    process.stderr.write(`No server runs on ${config.dataDir}. Start it with npm start, or set DATABASE_URL.\n`);
    return 1;
  }
  const { sql, close } = await openDatabase({ url, max: 1 });
  try {
    const [first] = await sql<{ id: string }[]>`select id from workspaces order by created_at, id limit 1`;
    const workspaceId = values.workspace ?? first?.id ?? '';
    const { wallet } = await topUp(sql, {
      workspaceId,
      amountNano,
      paymentType: 'one_time',
      operationKey: `cli:${values.key ?? randomUUID()}`,
      description: 'Topped up by the operator',
    });
    process.stdout.write(`The wallet of workspace ${workspaceId} now has ${Number(wallet.balanceNano) / 1e9} USD.\n`);
    return 0;
  } finally {
    await close();
  }
}

/** Exact to the nano-dollar; null for what is no positive amount. */
function nanoOf(text: string | undefined): bigint | null {
  const [, dollars, fraction = ''] = /^(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text ?? '') ?? [];
  if (dollars === undefined) return null;
  const nano = BigInt(dollars) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
  return nano > 0n ? nano : null;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: Error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  },
);
