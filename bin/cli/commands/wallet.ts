import { randomUUID } from 'node:crypto';
import { nanoToUsd } from '../../../runtime/money.ts';
import { inTransaction, type SqlOrTx } from '../../../storage/database.ts';
import { type PaymentType, topUp, type Wallet, walletOf } from '../../../storage/ledger.ts';
import type { WorkspaceRow } from '../../../storage/queries/workspaces.ts';
import { type Command, defineAction, UsageError } from '../command.ts';
import { formatUsd, parseUsd } from '../money.ts';
import { auditOperator, WORKSPACE_OPTION, withDatabase, workspaceOf } from '../operator-database.ts';
import { fields, table } from '../terminal.ts';

const show = defineAction({
  summary: 'Show the balance of a wallet and the holds of live calls.',
  options: WORKSPACE_OPTION,
  run: async ({ host, values }) =>
    await withDatabase(host, async (sql) => {
      const workspace = await workspaceOf(sql, values.workspace);
      const wallet = await walletOf(sql, workspace.id);
      const text = fields([
        ['workspace', `${workspace.name} (${workspace.id})`],
        ['balance', formatUsd(wallet.balanceNano)],
        ['held', formatUsd(wallet.heldNano)],
        ['available', formatUsd(wallet.availableNano)],
      ]);
      return { data: presentWallet(workspace, wallet), text };
    }),
});

const topUpAction = defineAction({
  summary: 'Top up a wallet.',
  parameters: [{ name: 'USD', about: 'a decimal such as 10 or 2.50' }],
  options: {
    ...WORKSPACE_OPTION,
    key: { value: 'OPERATION', about: 'idempotency key: tops up once (default: a new one)' },
    type: { value: 'TYPE', about: 'one_time (default), subscription or admin_bonus' },
    description: { value: 'TEXT', about: 'description in the list of transactions' },
  },
  async run({ host, values, arguments: [usd = ''] }) {
    const amountNano = parseUsd(usd);
    if (amountNano === null) throw new UsageError('USD takes a decimal above zero such as 10 or 2.50');
    const paymentType = PAYMENT_TYPES.find((type) => type === (values.type ?? 'one_time'));
    if (paymentType === undefined) throw new UsageError(`--type takes one of ${PAYMENT_TYPES.join(', ')}`);
    const { key = randomUUID() } = values;
    // An unset variable of a script must not look like a repetition.
    if (key === '' || key.length > MAX_KEY_LENGTH)
      throw new UsageError(`--key takes 1 to ${MAX_KEY_LENGTH} characters`);
    const operationKey = `cli:${key}`;
    return await withDatabase(host, async (sql) => {
      const workspace = await workspaceOf(sql, values.workspace);
      const now = new Date();
      const { wallet, isNew } = await inTransaction(sql, async (tx) => {
        // Serializes concurrent top-ups with the same key, so that exactly one reports that it added money.
        await tx`select pg_advisory_xact_lock(hashtextextended(${operationKey}, 0))`;
        const isRepeated = await wasDone(tx, operationKey);
        const { entryId, wallet: after } = await topUp(tx, {
          workspaceId: workspace.id,
          amountNano,
          paymentType,
          operationKey,
          description: values.description ?? 'Topped up by the operator',
          at: now,
        });
        if (!isRepeated) {
          const target = { type: 'transaction', id: entryId };
          const details = { amount_usd: nanoToUsd(amountNano) };
          await auditOperator(tx, { workspaceId: workspace.id, action: 'wallet.topped_up', target, details, now });
        }
        return { wallet: after, isNew: !isRepeated };
      });
      const what = isNew ? `${formatUsd(amountNano)} added` : 'This was done before, and nothing is added';
      const text = `${what}: the wallet of ${workspace.name} has ${formatUsd(wallet.balanceNano)}.`;
      return { data: { ...presentWallet(workspace, wallet), added: isNew }, text };
    });
  },
});

const transactions = defineAction({
  summary: 'List wallet transactions, newest first: top-ups, charges, refunds.',
  options: { ...WORKSPACE_OPTION, limit: { value: 'N', about: 'number of rows, 1 to 1000 (default 20)' } },
  async run({ host, values }) {
    const limit = Number(values.limit ?? 20);
    if (!(Number.isInteger(limit) && limit >= 1 && limit <= 1000)) throw new UsageError('--limit takes 1 to 1000');
    return await withDatabase(host, async (sql) => {
      const { id: workspaceId, name } = await workspaceOf(sql, values.workspace);
      const entries = await balanceChanges(sql, { workspaceId, limit });
      const text = table(
        ['TIME', 'KIND', 'AMOUNT', 'BALANCE', 'FOR'],
        entries.map((entry) => [
          entry.createdAt.toISOString(),
          entry.kind,
          formatUsd(entry.balanceAfterNano - entry.balanceBeforeNano),
          formatUsd(entry.balanceAfterNano),
          entry.callId ?? entry.description,
        ]),
        `The wallet of ${name} has no transactions yet. Add money with tandem wallet top-up.`,
      );
      return { data: { workspace_id: workspaceId, transactions: entries.map(presentEntry) }, text };
    });
  },
});

export const walletCommand: Command = { actions: { show, 'top-up': topUpAction, transactions } };

const MAX_KEY_LENGTH = 255;
const PAYMENT_TYPES: readonly PaymentType[] = ['one_time', 'subscription', 'admin_bonus'];

interface BalanceChange {
  id: string;
  kind: string;
  callId: string | null;
  balanceBeforeNano: bigint;
  balanceAfterNano: bigint;
  description: string;
  createdAt: Date;
}

/** Excludes holds, which change the available amount but not the balance. */
async function balanceChanges(
  sql: SqlOrTx,
  { workspaceId, limit }: { workspaceId: string; limit: number },
): Promise<BalanceChange[]> {
  return await sql<BalanceChange[]>`
    select id, kind, call_id, balance_before_nano, balance_after_nano, description, created_at from entries
    where workspace_id = ${workspaceId} and balance_before_nano <> balance_after_nano
    order by position desc limit ${limit}`;
}

async function wasDone(sql: SqlOrTx, operationKey: string): Promise<boolean> {
  const [entry] = await sql`select 1 from entries where operation_key = ${operationKey}`;
  return entry !== undefined;
}

function presentWallet({ id, name }: WorkspaceRow, wallet: Wallet) {
  return {
    workspace_id: id,
    workspace_name: name,
    balance_usd: nanoToUsd(wallet.balanceNano),
    held_usd: nanoToUsd(wallet.heldNano),
    available_usd: nanoToUsd(wallet.availableNano),
  };
}

function presentEntry(entry: BalanceChange) {
  return {
    id: entry.id,
    kind: entry.kind,
    amount_usd: nanoToUsd(entry.balanceAfterNano - entry.balanceBeforeNano),
    balance_before_usd: nanoToUsd(entry.balanceBeforeNano),
    balance_after_usd: nanoToUsd(entry.balanceAfterNano),
    call_id: entry.callId,
    description: entry.description,
    created_at: entry.createdAt.toISOString(),
  };
}
